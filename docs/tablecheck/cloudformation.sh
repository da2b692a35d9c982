#!/usr/bin/env bash
# Validates the CloudFormation templates, that of ../tables and those of the
# examples, with AWS's own offline validator, which knows the schemas of all resources:
#
#     docs/tablecheck/cloudformation.sh [FILE.md|FILE.yaml...]
#
# Errors and warnings fail. It needs Node 20 or later and npm, no AWS account.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
files=("$@")
if [[ $# == 0 ]]; then
	files=("$here/../tables/cloudformation.yaml" "$here"/../../examples/*/template.yaml)
fi

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# template FILE: what is YAML in it.
template() {
	if [[ $1 != *.md ]]; then
		cat "$1"
		return
	fi
	local fences
	fences=$(grep -c '^```yaml$' "$1" || true)
	if [[ $fences != 1 ]]; then
		echo "$1 has $fences YAML fences, one is expected" >&2
		return 1
	fi
	awk '/^```yaml$/ {on = 1; next} /^```/ {on = 0} on' "$1"
}

for i in "${!files[@]}"; do
	template "${files[i]}" >"$dir/$i.yaml"
	sed 's/BillingMode:/BilingMode:/' "$dir/$i.yaml" >"$dir/$i.broken.yaml"
done

cp "$here/package.json" "$here/package-lock.json" "$dir" # with the validator's sum
npm ci --loglevel=error --no-audit --no-fund --ignore-scripts --prefix "$dir"

cd "$dir"
node - "${files[@]}" <<'SCRIPT'
const { RegoEngine, TemplateFile, version } = require("@aws/cloudformation-validate");
const engine = new RegoEngine();
const validate = (file) => engine.validateStandard(new TemplateFile(file), { severityLevel: "WARN" });

let ok = true;
process.argv.slice(2).forEach((name, i) => {
  const report = validate(`${i}.yaml`);
  for (const d of report.diagnostics) {
    console.error(`${name}, line ${d.startLine} of the template: ${d.severity} ${d.ruleId}: ${d.message}`);
  }
  ok &&= report.status === "OK" && report.diagnostics.length === 0;
  // A validator that found nothing in a misspelled template would prove nothing.
  if (!validate(`${i}.broken.yaml`).diagnostics.some((d) => d.message.includes("BilingMode"))) {
    console.error(`${name}: the validator does not notice a misspelled property`);
    ok = false;
  }
  console.log(`CloudFormation template of ${name}: ${report.status}, ${report.diagnostics.length} findings (cloudformation-validate ${version()})`);
});
process.exit(ok ? 0 : 1);
SCRIPT
