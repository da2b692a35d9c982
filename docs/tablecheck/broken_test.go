package tablecheck

import (
	"errors"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/repo"
)

// TestBrokenDocumentsAreRefused shows that the checks can fail: each case
// changes the document in one way.
func TestBrokenDocumentsAreRefused(t *testing.T) {
	text := readDocument(t)
	cases := map[string]struct{ old, new, want string }{
		"Markdown, key":       {"| `queue` (S) |", "| `line` (S) |", "CloudFormation: table ticket is"},
		"Markdown, no row":    {"| `ticket` |", "| ticket |", "the Markdown table has the tables"},
		"two YAML fences":     {"```hcl\n", "```yaml\na: b\n```\n\n```hcl\n", "2 fences of yaml"},
		"YAML, property":      {"      BillingMode:", "      BilingMode:", `unknown field "BilingMode"`},
		"YAML, billing":       {"BillingMode: PAY_PER_REQUEST", "BillingMode: PROVISIONED", "CloudFormation: table"},
		"YAML, key":           {"{AttributeName: queue, KeyType", "{AttributeName: line, KeyType", "attributes that are no keys: [queue]"},
		"YAML, key type":      {"{AttributeName: sk, AttributeType: S}", "{AttributeName: sk, AttributeType: N}", "CloudFormation: table semaphore"},
		"YAML, role":          {"KeyType: RANGE", "KeyType: SORT", `key type "SORT"`},
		"YAML, TTL attribute": {"{AttributeName: expiresAt, Enabled", "{AttributeName: expires, Enabled", "CloudFormation: table"},
		"YAML, TTL off":       {"expiresAt, Enabled: true", "expiresAt, Enabled: false", "CloudFormation: table"},
		"YAML, no recovery":   {"RecoveryEnabled: true", "RecoveryEnabled: false", "CloudFormation: table"},
		"YAML, reference":     {"!Ref MutexTableName", "!Ref MutexName", "!Ref MutexName names nothing"},
		"YAML, attribute":     {"!GetAtt MutexTable.Arn", "!GetAtt MutexTable.Name", "!GetAtt MutexTable.Name names nothing"},
		"YAML, output":        {"  TicketTableArn:", "  TicketArn:", "no output TicketTableArn"},
		"YAML, twice":         {"  TicketTable:\n", "  MutexTable:\n", "already defined"},
		"HCL, argument":       {"  billing_mode ", "  biling_mode  ", `"biling_mode" is not expected here`},
		"HCL, billing":        {`= "PAY_PER_REQUEST"`, `= "PROVISIONED"`, "terraform: table"},
		"HCL, key":            {`= "queue"`, `= "line"`, "terraform: table ticket"},
		"HCL, key type":       {"\"sk\"\n    type = \"S\"", "\"sk\"\n    type = \"B\"", "terraform: table semaphore"},
		"HCL, TTL attribute":  {`= "expiresAt"`, `= "expires"`, "terraform: table"},
		"HCL, TTL off":        {"\"expiresAt\"\n    enabled        = true", "\"expiresAt\"\n    enabled        = false", "terraform: table"},
		"HCL, no recovery":    {"point_in_time_recovery {\n    enabled = true", "point_in_time_recovery {\n    enabled = false", "terraform: table"},
		"HCL, block":          {"  ttl {", "  tll {", `Blocks of type "tll" are not expected here`},
		"HCL, variable":       {"var.table_names.mutex", "var.table_names.mutes", `does not have an attribute named "mutes"`},
		"HCL, output":         {"aws_dynamodb_table.mutex.arn", "aws_dynamodb_table.mutes.arn", `does not have an attribute named "mutes"`},
		"HCL, format":         {"  billing_mode ", "  billing_mode  ", "not formatted"},
		"policy, action":      {`"dynamodb:Scan"`, `"dynamodb:ScanTable"`, "is no action of DynamoDB"},
		"YAML, mail":          {"{AttributeName: slot, AttributeType: S}", "{AttributeName: slot, AttributeType: N}", "CloudFormation: table mail"},
		"HCL, mail":           {`"mailbox"`, `"box"`, "terraform: table mail"},
		"policy, table":       {"table/mutex", "table/mutes", "none of the tables"},
		"policy, require":     {"        \"arn:aws:dynamodb:REGION:ACCOUNT:table/ticket\",\n        \"arn", "        \"arn", "statement Require"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(text, c.old) {
				t.Fatalf("%q is not in the document", c.old)
			}
			_, err := checkDocument(strings.ReplaceAll(text, c.old, c.new))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestBrokenTablesAreRefused shows the same for the packages' own checks.
func TestBrokenTablesAreRefused(t *testing.T) {
	tables, err := checkDocument(readDocument(t))
	if err != nil {
		t.Fatal(err)
	}
	client := localdb.Client(t)
	cases := map[string]struct {
		broken func(*table)
		want   error
	}{
		"partition key":      {func(t *table) { t.Partition.Name = "other" }, repo.ErrSchema},
		"partition key type": {func(t *table) { t.Partition.Type = "N" }, repo.ErrSchema},
		"sort key":           {func(t *table) { t.Sort = key{"other", "S"} }, repo.ErrSchema},
		"TTL attribute":      {func(t *table) { t.TTL = "other" }, repo.ErrSchema},
		"TTL off":            {func(t *table) { t.TTL = "" }, nil}, // its owner's choice
	}
	for name, tab := range tables {
		for what, c := range cases {
			t.Run(name+" "+what, func(t *testing.T) {
				tab := tab
				c.broken(&tab)
				if err := accept(t, client, tab); !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
			})
		}
	}
}
