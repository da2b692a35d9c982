package main

import (
	"errors"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/repo"
)

var update = flag.Bool("update", false, "write what the commands of the walk print into docs/night.md")

const walkPage, walkHead = "../../docs/night.md", "\n## Orders hang: a walk by night\n"

// What differs from night to night, in the output of a command.
var nightly = []struct {
	find *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z`), "<time>"},
	{regexp.MustCompile(`\((in )?[0-9hms]+( ago)?\)`), "(<span>)"},
	{regexp.MustCompile(`[0-9a-f]{15}-[A-Z2-7]{13}`), "<job>"},
	{regexp.MustCompile(`\b\d{16}\b`), "<token>"},
	{regexp.MustCompile(`(?m)^(<token>\s+)[\w-]{8}\s`), "$1<entry> "},
	{regexp.MustCompile(`─+`), "─"},
	{regexp.MustCompile(` +`), " "},
	{regexp.MustCompile(`(?m) +$`), ""},
}

// shape is an output without what differs from night to night.
func shape(s string) string {
	for _, n := range nightly {
		s = n.find.ReplaceAllString(s, n.as)
	}
	return strings.TrimSpace(s)
}

// The walk of docs/night.md finds and mends everything that stands still, by the
// very commands of the page, which print what the page shows.
func TestTheWalkOfTheDocument(t *testing.T) {
	n := newNight(t)
	document, err := os.ReadFile(walkPage)
	n.is(err)
	before, walk, _ := strings.Cut(string(document), walkHead)
	walk, after, _ := strings.Cut(walk, "\n## ")
	seen := map[string]string{}
	var page strings.Builder
	ran := map[string]bool{}
	for part := range strings.SplitSeq(walk, "```sh\n") {
		block, rest, is := strings.Cut(part, "```")
		if !is {
			page.WriteString(part)
			continue
		}
		page.WriteString("```sh\n")
		for step := range strings.SplitSeq(strings.TrimPrefix(block, "$ dynahold "), "\n$ dynahold ") {
			line, want, _ := strings.Cut(step, "\n")
			got := n.step(line, seen, ran)
			page.WriteString("$ dynahold " + line + "\n" + got)
			if !*update && shape(got) != shape(want) {
				t.Errorf("%s prints\n%s\nand the page shows\n%s\n(go test -run Walk . -update)", line, shape(got), shape(want))
			}
		}
		page.WriteString("```" + rest)
	}
	if *update {
		n.is(os.WriteFile(walkPage, []byte(before+walkHead+page.String()+"\n## "+after), 0o644))
	}
	for _, command := range []string{"item show", "locks list", "locks show", "locks break", "jobs list", "jobs show", "jobs dead", "jobs requeue", "jobs discard",
		"jobs break", "jobs cancel", "resources pause", "resources resume", "queue list", "queue evict"} {
		if !ran[command] {
			t.Errorf("the walk does not go by %s", command)
		}
	}
	n.mended()
}

// step runs a command of the walk. TOKEN, JOB and NUMBER are what commands before have
// shown.
func (n *night) step(line string, seen map[string]string, ran map[string]bool) string {
	n.Helper()
	words := strings.Fields(line)
	command := words[0] + " " + words[1]
	ran[command] = true
	line = strings.NewReplacer("TOKEN", seen["token"], "JOB", seen["id"], "NUMBER", seen["number"]).Replace(line)
	switch command {
	case "item show", "locks show":
		seen["token"] = n.field(line, "token")
	case "jobs show":
		if n.field(line, "state") == "running" {
			seen["token"] = n.field(line, "token")
		}
	case "jobs dead":
		seen["id"] = n.field(line, "id")
	case "jobs list":
		if len(words) == 4 {
			seen["id"] = n.field(line, "id")
		}
	case "queue list":
		seen["number"] = n.field(line, "number")
	}
	code, out, errs := n.call("y\n", line)
	if code != exitOK || out == "" {
		n.Errorf("%s: code %d, %s%s", line, code, out, errs)
	}
	if strings.HasSuffix(errs, "[y/N] ") {
		errs += "y\n" // as a terminal shows it
	}
	if command == "jobs requeue" {
		n.fail() // it fails again
	}
	return errs + out
}

// mended demands that nothing stands still any more, and that those who made it so know.
func (n *night) mended() {
	n.Helper()
	n.says("locks list orders", exitOK, "nobody holds a lock")
	n.says("locks list locks", exitOK, "nobody holds a lock")
	n.says("jobs dead jobs orders", exitOK, "no dead letter")
	n.says("jobs list jobs mails", exitOK, "waits")
	if holder := n.field("queue list queues printer", "owner"); holder != "press-2" {
		n.Errorf("the turn has %q", holder)
	}
	ctx := n.Context()
	_, err := n.order.Commit(ctx, n.order.Item())
	for what, err := range map[string]error{"order": err, "report": n.report.Unlock(ctx), "mail": n.mail.Done(ctx), "turn": n.turn.Done(ctx)} {
		if !errors.Is(err, repo.ErrLockLost) {
			n.Errorf("the holder of the %s was told %v", what, err)
		}
	}
	job, err := n.jobs.Next(ctx, "mails")
	n.is(err)
	if job.Value()["order"] != 9 {
		n.Errorf("the next mail is about order %d", job.Value()["order"])
	}
}
