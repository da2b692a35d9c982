package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func number(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }

// What others have written into a table is no command to the terminal, in an error neither.
func TestErrorsHaveNoCommandsForTheTerminal(t *testing.T) {
	n := newNight(t)
	n.put("orders", map[string]types.AttributeValue{"id": word("eve"), "lockedBy": word("eve\x1b[31m\u009b"), "lockTime": number("1"), "lockHeld": number("3")})
	n.put("jobs", map[string]types.AttributeValue{"pk": word("JOBS#mails"), "sk": word("zz"), "id": word("zz"), "state": word("running"), "until": number("1"), "owner": word("eve\x1b[31m"), "token": number("3")})
	for _, line := range []string{"locks break orders eve --yes --token 4", "jobs break jobs mails zz --yes --token 4", "jobs cancel jobs mails zz --yes"} {
		if code, out, errs := n.call("", line); code != exitMoved || strings.ContainsAny(out+errs, "\x1b\u009b") || !strings.Contains(errs, `eve\x1b[31m`) {
			t.Errorf("%s: code %d, %q", line, code, out+errs)
		}
	}
	n.says("locks show locks nightly-report extra\x1b[2J", exitUsage)
}

// A job or a dead letter that cannot be read is not shown as if it could.
func TestRowsThatCannotBeRead(t *testing.T) {
	n := newNight(t)
	bad := func(pk, id string, more map[string]types.AttributeValue) {
		more["pk"], more["sk"], more["id"] = word(pk), word(id), word(id)
		n.put("jobs", more)
	}
	bad("JOBS#mails", "runs", map[string]types.AttributeValue{"state": word("running"), "attempts": word("x")})
	bad("JOBS#mails", "waits", map[string]types.AttributeValue{"state": word("queued"), "attempts": word("x")})
	bad("DEAD#mails", "dead", map[string]types.AttributeValue{"attempts": word("x")})
	bad("DEAD#mails", "text", map[string]types.AttributeValue{"attempts": number("1"), "job": word("{")})
	for _, id := range []string{"runs", "waits", "dead", "text"} {
		n.says("jobs show jobs mails "+id, exitFailed, "schema mismatch", id)
	}
	n.says("jobs show jobs mails "+n.mail.ID(), exitOK, "mailer-4")
	n.says("jobs show jobs mails text", exitFailed, "attempts  1")
	n.says("jobs show jobs mails nothing", exitFailed, "not among those that can be read")
	n.says("jobs cancel jobs mails nothing --yes", exitFailed, "not among those that can be read")
	n.says("jobs discard jobs mails text --yes", exitOK, "discarded: text")
}

// A list that could not be read is not an empty one.
func TestAListThatFailsIsNotEmpty(t *testing.T) {
	n := newNight(t)
	n.between(func(operation string) bool { return operation != "Scan" && operation != "Query" }, nil)
	for _, line := range []string{"locks list orders", "jobs list jobs mails", "jobs dead jobs orders", "jobs list jobs"} {
		code, out, errs := n.call("", line)
		if code != exitFailed || out != "" || !strings.Contains(errs, "not now") {
			t.Errorf("%s: code %d, %q, %s", line, code, out, errs)
		}
	}
}

// A lock that was handed over has no holder by name yet, in no list.
func TestLocksThatWereHandedOver(t *testing.T) {
	n := newNight(t)
	n.put("locks", map[string]types.AttributeValue{"name": word("handed"), "lockedBy": word("next#aaaaaA"), "lockTime": number("4000000000"),
		"lockLease": number("1"), "lockHeld": number("7"), "lockToken": number("9")})
	n.says("locks list locks", exitOK, "one from the queue")
	for _, line := range []string{"locks list locks", "locks show locks handed", "item show locks handed"} {
		if code, out, errs := n.call("", line+" -o json"); code != exitOK || strings.Contains(out, `"next"`) || !strings.Contains(out, `"handed_over": true`) {
			t.Errorf("%s: code %d, %s%s", line, code, out, errs)
		}
	}
}

// A watch that was killed while it wrote leaves half a line. The next one appends to the
// same file all the same.
func TestARecordIsContinuedAfterAKill(t *testing.T) {
	n := newNight(t)
	file := filepath.Join(t.TempDir(), "night.jsonl")
	for range 2 {
		w := n.pipe("locks watch orders --every 100ms -o json --record " + file)
		w.read("watching")
		w.read("held")
		w.end(exitOK, "stopped")
		whole, err := os.ReadFile(file)
		n.is(err)
		n.is(os.WriteFile(file, whole[:len(whole)-10], 0o600)) // in the last line
	}
	if code, out, errs := call(t.Context(), &fake{}, "locks", "timeline", file); code != exitOK || !strings.Contains(out, "held at the last look") {
		t.Errorf("code %d, %s%s", code, out, errs)
	}

	var errs bytes.Buffer
	code := run(t.Context(), strings.Fields("locks watch orders --every 100ms --endpoint "+n.endpoint+" --record "+file), &console{out: broken{}, err: &errs, width: plainWidth}, &fake{})
	whole, err := os.ReadFile(file)
	n.is(err)
	if lines := strings.Split(strings.TrimSpace(string(whole)), "\n"); code != exitFailed || !strings.Contains(lines[len(lines)-1], "stopped") {
		t.Errorf("code %d, %s, the record of a watch whose output is closed ends with %s", code, &errs, lines[len(lines)-1])
	}
	if code, _, errs := call(t.Context(), &fake{}, "locks", "timeline", file, "--html", file); code != exitUsage || !strings.Contains(errs, "is a record") {
		t.Errorf("code %d, %s", code, errs)
	}
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(again, whole) {
		t.Errorf("the record is gone: %v", err)
	}
}
