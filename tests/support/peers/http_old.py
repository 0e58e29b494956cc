"""HTTP+SSE of 2024-11-05 for `http_scripted`: one stream for all answers, messages by POST."""

import json
import queue
import threading
import uuid

from http_responses import OldResponse, Response


class OldHttp:
    """The part of a server that speaks it."""

    def old_stream(self, handler, response):
        if handler.path.partition("?")[0] != "/sse":
            response.empty(404)
            return
        session = uuid.uuid4().hex
        mine = queue.Queue()
        self.sessions[session] = mine
        response.start_stream()
        where = self.opt.get("endpoint", f"/messages?session={session}")
        response.chunk(b": hello\n\nevent: endpoint\ndata: " + where.encode() + b"\n\n")
        try:
            while True:
                try:
                    message = mine.get(timeout=0.5)
                except queue.Empty:
                    response.chunk(b": alive\n\n")
                    continue
                if message is None:
                    response.cut()
                    return
                response.event(message)
        finally:
            self.sessions.pop(session, None)

    def old_post(self, handler, body):
        path, _, session = handler.path.partition("?session=")
        response = Response(handler, self, {})
        if path != "/messages":
            response.empty(405 if path == "/sse" else 404)
            return
        mine = self.sessions.get(session)
        if mine is None:
            response.whole(404, "text/plain", b"Could not find session")
            return
        message = json.loads(body)
        self.note("in", msg=message)
        method = message.get("method")
        self.received[method] = self.received.get(method, 0) + 1
        response.whole(202, "text/plain", b"Accepted")
        self.here.response = OldResponse(mine, handler)
        if method is None:
            waiting = self.waiting.get(message.get("id"))
            if waiting:
                waiting[1] = message
                waiting[0].set()
        elif "id" in message:
            thread = threading.Thread(target=self.old_answer, args=(message, mine, handler))
            thread.daemon = True
            thread.start()
        else:
            self.notified(method, message.get("params") or {})
        self.here.response = None

    def old_answer(self, message, mine, handler):
        self.here.response = OldResponse(mine, handler)
        self.asked_for(message)
