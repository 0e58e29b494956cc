"""A scripted MCP server on stdin and stdout, as a real child process (standard library only).

Run it as `python -I -S scripted.py [--option value ...]`; tests use `tests.support.peers.scripted`.

What the server is
  --era dual|modern|legacy   which of discover and initialize it knows (dual); the other: -32601
  --name NAME                its serverInfo name ("scripted")
  --server-version V         its serverInfo version ("1")
  --instructions TEXT        in the answer to discover or initialize
  --capabilities JSON        instead of what follows from its tools, prompts and resources
  --versions V,V             its supportedVersions ("2026-07-28", and if dual the legacy ones)
  --lenient yes              a legacy server that answers modern-stamped requests too

How it answers the first questions: a CASE is `name` or `name:argument`
  --discover CASE, --initialize CASE
      ok | silent | late:SECONDS | after:METHOD (ok once that has come, before it is answered)
      error:CODE | error:CODE:JSON_DATA | exit:STATUS | kill:SIGNAL
      empty (result {}) | null (result null) | both (result and error) | neither | array (a batch)
      garbage (a line that is no JSON, then silence) | wrong_id | string_id | float_id | null_id
      close (closes stdout and lives on) | result:JSON (this very result) | unknown (-32601)
      versions:V,V (discover only) | version:V (initialize only, "" allowed)
  --discover-then CASE       for its second and later discover (default: the same again)

What it offers
  --tools NAME,NAME          ("echo") known names act as below, others answer their own name
      echo {text} · add {a,b} · slow {s,tag} · held {file} (answers
      once it is there) · mute (never answers) · big {bytes} · fail (isError)
      rpc_error {code,message,data} · structured {value} · die {status} · kill · garbage · env
      progress {n,s} (n progress notes) · stall (reads stdin no more) · close (closes stdout)
      ask {key,method,params} (input_required once; modern) · ask_forever · state (state only)
      dialogue {state,requests} (asks that, then answers what came)
      request {method,params} (a request to the client, answer becomes the text)
      odd {type} (that resultType) · noise (lines that are no messages) · dup (answers twice)
      orphan (results for ids never asked, then the answer) · pid · spawn (a grandchild; its pid)
      flood {n} (n log notifications) · stderr {text} · changed {kind} (sends list_changed)
      add_tool {name} · remove_tool {name} (both say list_changed) · received {method} (a count)
      log {level} (a log message) · updated {uri} · task {polls,ms} (a task, over after that many
      polls) · connect (-32042 with an address the first time) · hush (answers this, and then
      nothing, though it reads) · busy {s} (does nothing else meanwhile) · eat {mb} (keeps memory)
  --tool-json JSON           a further complete tool object (repeatable)
  --many N                   N further tools t0000…
  --prompts A,B · --resources URI,URI · --templates T,T    (none)
  --page N                   N items a page, with cursors ("c<offset>")
  --cursor-loop yes          the cursor of the second page is given again and again
  --list CASE                how */list answers: as CASE above (silent, error:CODE, late:S, …)
  --list-sleep S             each list answer takes this long
  --ttl MS · --scope public  how long and for whom lists and resources may be kept (0, private)

  --listen CASE[,CASE…]      how the first, second, … and all later subscriptions/listen go (ok)
      ok | only:FIELD (acknowledges no other) | graceful:SECONDS | cancelled:SECONDS | both:SECONDS
      (acknowledged, and ended that long after) | early (a change before the acknowledgment)
      crash:SECONDS (acknowledged, then exits 1) | as CASE above (silent, error:CODE, unknown, …)
      over HTTP also cut:SECONDS (acknowledged, then cut) | status:CODE
  --unseen TOOL              a tool that is there, and nobody told, once a stream was ended so, and
                             from the second start on (needs --state)
  --subscribe CASE           how resources/subscribe is answered (ok), as CASE above
  --comments no              over HTTP: nothing keeps a stream alive (a comment each 0.2 s)

How it behaves as a process
  --start-delay S            reads and writes nothing for S seconds (says so on stderr)
  --banner TEXT              written to stdout first ("\\n" allowed)
  --stderr TEXT · --stderr-flood BYTES     written to stderr first
  --exit-at-start STATUS     exits before reading anything
  --exit-first N             the first N starts exit with status 1 (needs --state)
  --die-after S              exits 1 that long after the first initialize or discover was answered
  --ignore-eof yes · --ignore-term yes     lives on for --max-life
  --ping-at-start yes        sends a ping request before anything (legacy)
  --ask-at-initialized M,M   requests sent to the client at notifications/initialized (legacy)
  --crlf yes · --split yes (one byte a write) · --noise yes (a log line before each message)
  --bad-notification-replies yes   answers each notification with an error that has a null id

Recording
  --log FILE                 appends one JSON line per event: {"t","pid","ev",…}; ev is start, in
                             (msg), out (id), child (child_pid), eof, term, exit
  --state FILE               counts starts
  --max-life S               ends itself after this (60)
"""

import os
import sys

sys.path.insert(0, os.path.dirname(__file__))  # -I leaves it out

from scripted_server import Server, options

if __name__ == "__main__":
    Server(options(sys.argv[1:])).run()
