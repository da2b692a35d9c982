#!/usr/bin/env bash
# Checks the syntax of every Mermaid diagram in the documents, with Mermaid's own
# parser and without a browser:
#
#     docs/diagrams.sh
#
# It needs Node 18 or later and npm.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The package has everything in it that the parser needs: its own dependencies,
# of 200 MB, are not installed.
npm pack --silent --pack-destination "$dir" mermaid@12.3.0 >/dev/null
tar -xzf "$dir"/mermaid-*.tgz -C "$dir" package/package.json package/dist/mermaid.esm.min.mjs package/dist/chunks/mermaid.esm.min

cat >"$dir/check.mjs" <<'SCRIPT'
import { readFileSync } from "node:fs";
import mermaid from "./package/dist/mermaid.esm.min.mjs";

let diagrams = 0, wrong = 0;
for (const file of process.argv.slice(2)) {
  for (const [, text] of readFileSync(file, "utf8").matchAll(/^```mermaid\n([^]*?)^```$/gm)) {
    diagrams++;
    try {
      await mermaid.parse(text);
    } catch (error) {
      wrong++;
      console.error(`${file}, diagram ${diagrams}: ${error}`);
    }
  }
}
// A parser that finds nothing wrong in a broken diagram would prove nothing.
if (await mermaid.parse("sequenceDiagram\n  A->>: to nobody", { suppressErrors: true })) {
  console.error("the parser does not notice a broken diagram");
  wrong++;
}
console.log(`Mermaid: ${diagrams} diagrams, ${wrong} wrong`);
process.exit(wrong || !diagrams ? 1 : 0);
SCRIPT
node "$dir/check.mjs" README.md docs/*.md
