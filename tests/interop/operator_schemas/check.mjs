import { readFileSync } from "node:fs";
import * as known from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";
for (const file of process.argv.slice(2)) {
  const manifest = JSON.parse(readFileSync(file, "utf8"));
  const Kind = known[manifest.kind];
  if (Kind === undefined) throw new Error(`${file}: no kind ${manifest.kind}`);
  new Kind(manifest).validate();
  console.log(`${manifest.kind}: ok`);
}
