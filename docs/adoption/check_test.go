package adoption

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// tool runs the operator's tool against the engine.
func tool(t *testing.T, program string, args ...string) (output string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, append(args, "--endpoint", engine.Endpoint())...)
	cmd.Env = append(cmd.Environ(), "AWS_ACCESS_KEY_ID=x", "AWS_SECRET_ACCESS_KEY=x", "AWS_REGION=us-east-1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func buildTool(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "dynahold")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/dynahold")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// The check finds what collides, and with the mend that it names the items can be used, and nothing of them is lost.
func TestTableCheckNamesTheMend(t *testing.T) {
	program := buildTool(t)
	name := oldTable(t, "id")
	put(t, name, row{"id": text("fine"), "balance": number("1")})
	if out, code := tool(t, program, "table", "check", name); code != 0 {
		t.Errorf("nothing collides, and the check ends with %d:\n%s", code, out)
	}
	locks := oldTable(t, "key")
	must((&dynamolock{table: locks, owner: "a", lease: "20s"}).AcquireLock(t.Context(), "report"))(t)
	if out, code := tool(t, program, "table", "check", locks); code != 5 || !strings.Contains(out, "use another table for the library's locks") {
		t.Errorf("locks of another client, and the check ends with %d:\n%s", code, out)
	}
	authors := &types.AttributeValueMemberL{Value: []types.AttributeValue{text("Ann")}}
	put(t, name, row{"id": text("book"), "balance": number("1"), "writers": authors, "lockedBy": text("the clerk")})
	out, code := tool(t, program, "table", "check", name)
	for _, want := range []string{"set TableConfig.Attributes.Writers to another name", "set TableConfig.Attributes.LockedBy to another name"} {
		if code != 5 || !strings.Contains(out, want) {
			t.Errorf("the check ends with %d and does not say %q:\n%s", code, want, out)
		}
	}
	take := func(_ context.Context, a *Account) error { a.Balance--; return nil }
	unmended := must(openAccounts(t.Context(), client, name))(t)
	if _, err := unmended.Update(t.Context(), repo.Key{Partition: "book"}, take); !errors.Is(err, repo.ErrSchema) {
		t.Errorf("an item that collides: %v", err)
	}
	table := must(repo.NewTable[Account](client, name, repo.TableConfig{Attributes: repo.Attributes{Writers: "dhWriters", LockedBy: "dhLockedBy"}}))(t)
	must(must(optimistic.New(table, optimistic.Config{}))(t).Update(t.Context(), repo.Key{Partition: "book"}, take))(t)
	got := raw(t, name, "id", "book")
	if by, ok := got["lockedBy"].(*types.AttributeValueMemberS); !ok || by.Value != "the clerk" || got["writers"].(*types.AttributeValueMemberL) == nil || got["dhWriters"] == nil {
		t.Errorf("the item is %v", got)
	}
	if out, code := tool(t, program, "table", "check", name, "--attribute", "Writers=dhWriters", "--attribute", "LockedBy=dhLockedBy"); code != 0 {
		t.Errorf("mended, and the check ends with %d:\n%s", code, out)
	}
}
