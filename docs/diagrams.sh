#!/usr/bin/env bash
# Checks the syntax of every Mermaid diagram in the documents, with Mermaid's own
# parser and without a browser:
#
#     docs/diagrams.sh
#
# It needs Node 20 or later and npm. The lock file has the parser's sum. It names the
# package alone, which has in it all that the parser needs: its own dependencies, 80 MB,
# are left out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cp docs/mermaid/package.json docs/mermaid/package-lock.json "$dir"
npm ci --loglevel=error --no-audit --no-fund --ignore-scripts --prefix "$dir"

cat >"$dir/check.mjs" <<'SCRIPT'
import { readFileSync } from "node:fs";

// Labels of states go through a sanitizer that asks for a browser's document. Given an
// empty one it leaves them as they are, which is right where nothing is drawn.
globalThis.window = { document: { nodeType: 9, implementation: {}, createElement: () => ({}) }, Element: class {} };
const { default: mermaid } = await import("./node_modules/mermaid/dist/mermaid.esm.min.mjs");

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
for (const broken of ["sequenceDiagram\n  A->>: to nobody", "stateDiagram-v2\n  [*] --> : to nowhere"]) {
  if (await mermaid.parse(broken, { suppressErrors: true })) {
    console.error(`the parser does not notice a broken diagram: ${broken}`);
    wrong++;
  }
}
console.log(`Mermaid: ${diagrams} diagrams, ${wrong} wrong`);
process.exit(wrong || !diagrams ? 1 : 0);
SCRIPT
node "$dir/check.mjs" README.md docs/*.md
