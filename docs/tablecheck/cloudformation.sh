#!/usr/bin/env bash
# Validates the CloudFormation template of ../tables.md with AWS's own offline
# validator, which knows the schemas of all resources:
#
#     docs/tablecheck/cloudformation.sh [FILE.md]
#
# Errors and warnings fail. It needs Node 18 or later and npm, no AWS account.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
document=${1:-$here/../tables.md}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fences=$(grep -c '^```yaml$' "$document" || true)
if [[ $fences != 1 ]]; then
	echo "$document has $fences YAML fences, one is expected" >&2
	exit 1
fi
awk '/^```yaml$/ {on = 1; next} /^```/ {on = 0} on' "$document" >"$dir/template.yaml"
sed 's/BillingMode:/BilingMode:/' "$dir/template.yaml" >"$dir/broken.yaml"

npm install --loglevel=error --no-audit --no-fund --ignore-scripts --prefix "$dir" @aws/cloudformation-validate@1.9.0-beta

cd "$dir"
node - <<'SCRIPT'
const { RegoEngine, TemplateFile, version } = require("@aws/cloudformation-validate");
const engine = new RegoEngine();
const validate = (file) => engine.validateStandard(new TemplateFile(file), { severityLevel: "WARN" });

const report = validate("template.yaml");
for (const d of report.diagnostics) {
  console.error(`template.yaml:${d.startLine}: ${d.severity} ${d.ruleId}: ${d.message}`);
}
let ok = report.status === "OK" && report.diagnostics.length === 0;
// A validator that found nothing in a misspelled template would prove nothing.
if (!validate("broken.yaml").diagnostics.some((d) => d.message.includes("BilingMode"))) {
  console.error("the validator does not notice a misspelled property");
  ok = false;
}
console.log(`CloudFormation template: ${report.status}, ${report.diagnostics.length} findings (cloudformation-validate ${version()})`);
process.exit(ok ? 0 : 1);
SCRIPT
