package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/jobs"
)

// die makes dead letters of a resource, with these errors.
func (n *night) die(resource string, failures ...string) (ids []string) {
	n.Helper()
	for i, failure := range failures {
		id, err := n.jobs.Enqueue(n.Context(), resource, map[string]int{"order": i})
		n.is(err)
		job, err := n.jobs.Next(n.Context(), resource)
		n.is(err)
		n.is(job.Fail(n.Context(), errors.New(failure)))
		ids = append(ids, id)
	}
	return ids
}

// counts are the jobs and the dead letters of a resource.
func (n *night) counts(resource string, queued, dead int) {
	n.Helper()
	r, err := n.jobs.Resource(n.Context(), resource)
	n.is(err)
	if r.Queued != queued || r.Dead != dead {
		n.Errorf("%s: %d queued, %d dead, want %d and %d", resource, r.Queued, r.Dead, queued, dead)
	}
}

// Of many dead letters those are requeued, or discarded, that the flags select, and no
// others; a dry run changes nothing.
func TestManyDeadLetters(t *testing.T) {
	n := newNight(t)
	ids := n.die("bills", "no address", "no money", "no address", "no bank")
	for _, c := range []struct{ flags, says string }{
		{"", "--all"}, {ids[0] + " --all", "--all"}, {ids[0] + " --dry-run", "go with --all"}, {ids[0] + " --error no", "go with --all"}, {"--all --older-than -1h", "above 0"},
	} {
		n.says("jobs requeue jobs bills "+c.flags, exitUsage, c.says)
		n.says("jobs discard jobs bills "+c.flags, exitUsage, c.says)
	}
	n.says("jobs requeue jobs bills --all --error address --dry-run", exitOK, ids[0], ids[2], "no address")
	if _, out, _ := n.call("", "jobs discard jobs bills --all --error address --dry-run"); strings.Contains(out, ids[1]) || strings.Contains(out, ids[3]) {
		t.Errorf("others are listed: %s", out)
	}
	n.says("jobs requeue jobs bills --all --older-than 1h --yes", exitOK, "no such dead letter")
	n.says("jobs requeue jobs bills --all", exitUsage, "--yes", "dead letters  4")
	if code, _, errs := n.call("n\n", "jobs discard jobs bills --all"); code != exitFailed || !strings.Contains(errs, "not agreed to") {
		t.Errorf("code %d, %s", code, errs)
	}
	n.counts("bills", 0, 4)
	n.says("jobs requeue jobs bills --all --error address --yes", exitOK, "requeued: 2 of bills")
	n.counts("bills", 2, 2)
	n.says("jobs discard jobs bills --all --error money -o json --yes", exitOK, `"discarded"`, ids[1], `"gone": []`)
	n.counts("bills", 2, 1)
	n.says("jobs discard jobs bills "+ids[3]+" --yes", exitOK, "discarded: "+ids[3])
	n.says("jobs discard jobs bills --all --yes -o json", exitOK, "[]")
	n.says("jobs discard nowhere bills --all --yes", exitNothing)
}

// One that cannot be read is left where it is by requeue, and told; discard takes it, too.
func TestManyDeadLettersOfWhichOneIsBroken(t *testing.T) {
	n := newNight(t)
	ids := n.die("bills", "no address", "no money")
	page, err := n.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("jobs")})
	n.is(err)
	for _, row := range page.Items {
		if text(row["id"]) == ids[0] {
			row["job"] = word("{")
			n.put("jobs", row)
		}
	}
	n.says("jobs requeue jobs bills --all --yes", exitFailed, "requeued: 1 of bills", ids[0])
	n.counts("bills", 1, 1)
	n.says("jobs discard jobs bills --all --yes", exitOK, "discarded: 1 of bills")
	n.counts("bills", 1, 0)
}

// What of many was done is told, where one fails and where others were quicker.
func TestManyEndWhereOneFails(t *testing.T) {
	n := newNight(t)
	var out strings.Builder
	f := &deadFlags{resourceFlags: resourceFlags{Resource: "bills"}}
	list := []jobDocument{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}
	err := f.many(t.Context(), &console{out: &out}, nil, "requeued", list, func(id string) error {
		switch id {
		case "b":
			return n.jobs.Discard(t.Context(), "bills", "never")
		case "d":
			return errors.New("no network")
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), `requeued 2 of 4, then "d" failed: no network`) || !strings.Contains(out.String(), "2 of bills; for 1 somebody was quicker") {
		t.Errorf("%v, %s", err, &out)
	}
}

// A job gets another time, or none, and keeps its attempts.
func TestJobsGetAnotherTime(t *testing.T) {
	n := newNight(t)
	later, err := n.jobs.Enqueue(t.Context(), "bills", map[string]int{"order": 1}, jobs.After(time.Hour), jobs.Priority(1))
	n.is(err)
	waits, err := n.jobs.Enqueue(t.Context(), "bills", map[string]int{"order": 2})
	n.is(err)
	n.says("jobs list jobs", exitOK, "later")
	n.says("jobs list jobs -o json", exitOK, `"later": 1`)
	n.says("jobs list jobs bills", exitOK, "due at", "priority")
	n.says("jobs list jobs bills -o json", exitOK, `"priority": 1`, `"priority": 2`, `"not_before"`)
	for _, flags := range []string{"", "--in -1m", "--in 1h --at 2030-01-01T00:00:00Z", "--at soon"} {
		n.says("jobs reschedule jobs bills "+later+" "+flags, exitUsage)
	}
	n.says("jobs reschedule jobs bills "+later+" --yes --at 2020-01-01T00:00:00Z", exitUsage, "run-now")
	n.says("jobs reschedule jobs bills "+later+" --in 2h", exitUsage, "--yes", "new time")
	n.says("jobs reschedule jobs bills never --in 2h --yes", exitNothing)
	n.says("jobs reschedule jobs mails "+n.mail.ID()+" --in 2h --yes", exitMoved, "mailer-4")
	n.says("jobs reschedule jobs bills "+later+" --in 2h --yes", exitOK, "rescheduled: "+later)
	n.says("jobs reschedule jobs bills "+waits+" --at 2060-01-01T00:00:00Z --yes -o json", exitOK, `"rescheduled"`, "2060-01-01T00:00:00Z")
	n.counts("bills", 2, 0)
	if _, err := n.jobs.Next(t.Context(), "bills"); !errors.Is(err, jobs.ErrNoWork) {
		t.Errorf("a job starts before its time: %v", err)
	}
	n.says("jobs run-now jobs bills "+waits+" --yes", exitOK, "put in line: "+waits, "new time  now")
	n.says("jobs run-now jobs bills "+waits+" --yes", exitMoved, "in line already")
	n.says("jobs run-now jobs mails "+n.mail.ID()+" --yes", exitMoved, "mailer-4")
	n.says("jobs run-now jobs bills never --yes", exitNothing)
	job, err := n.jobs.Next(t.Context(), "bills")
	n.is(err)
	if job.ID() != waits {
		t.Errorf("%s starts, want %s", job.ID(), waits)
	}
	n.is(job.Done(t.Context()))
}

// Periodic jobs are listed with their last and next tick, also in a table that has nothing
// else yet.
func TestSchedulesOfATable(t *testing.T) {
	n := newNight(t)
	all, err := jobs.New[int](n.client, "ticks", jobs.Config{})
	n.is(err)
	n.is(all.EnsureTable(t.Context()))
	n.says("jobs schedules ticks", exitOK, "no program has a periodic job")
	n.says("jobs schedules nowhere", exitNothing)
	n.says("jobs schedules orders", exitUsage)
	ctx, cancel := context.WithCancel(t.Context())
	ticked := make(chan time.Time, 100)
	all.Periodic("report", jobs.Every(time.Second), func(tick time.Time) (string, int, error) { return "reports", 1, nil })
	all.Periodic("yearly", jobs.Every(365*24*time.Hour), func(time.Time) (string, int, error) { return "reports", 2, nil })
	ended := make(chan error, 1)
	go func() {
		ended <- all.Run(ctx, func(context.Context, *jobs.Job[int]) error { ticked <- time.Now(); return nil })
	}()
	<-ticked
	cancel()
	n.is(<-ended)
	n.says("jobs schedules ticks", exitOK, "report", "yearly", "none yet", "last tick")
	n.says("jobs schedules ticks -o json", exitOK, `"name": "report"`, `"last": "2`, `"last": null`, fmt.Sprintf("%q", jobs.Every(time.Second).String()))
	n.says("jobs forget-schedule ticks yearly", exitUsage, "--yes", "none yet")
	n.says("jobs forget-schedule ticks yearly --yes", exitOK, "forgotten: yearly")
	n.says("jobs forget-schedule ticks yearly --yes", exitNothing, "yearly")
	n.says("jobs forget-schedule ticks report --yes -o json", exitOK, `"forgotten"`, `"name": "report"`)
	n.says("jobs schedules ticks", exitOK, "no program has a periodic job")
}

// What is kept of a job that has ended is shown, and why it was discarded.
func TestKeptJobsAreShown(t *testing.T) {
	n := newNight(t)
	id, err := n.jobs.Enqueue(t.Context(), "bills", map[string]int{"order": 1}, jobs.Keep(time.Hour))
	n.is(err)
	job, err := n.jobs.Next(t.Context(), "bills")
	n.is(err)
	n.is(job.SetResult(map[string]int{"paid": 42}))
	n.is(job.Done(t.Context()))
	n.says("jobs show jobs bills "+id, exitOK, "done at", "kept until", `{"paid":42}`)
	n.says("jobs show jobs bills "+id+" -o json", exitOK, `"state": "done"`, `"result": {`, `"paid": 42`)
	id, err = n.jobs.Enqueue(t.Context(), "bills", map[string]int{"order": 2}, jobs.Keep(time.Hour), jobs.Attempts(1))
	n.is(err)
	job, err = n.jobs.Next(t.Context(), "bills")
	n.is(err)
	n.is(job.Fail(t.Context(), errors.New("no address")))
	n.says("jobs discard jobs bills "+id+" --yes", exitOK)
	n.says("jobs show jobs bills "+id, exitOK, "discarded at", "no address")
}

func TestResourcesAreLimitedAuditedAndForgotten(t *testing.T) {
	n := newNight(t)
	n.says("resources limit jobs mails", exitUsage)
	n.says("resources limit jobs mails 0 --yes", exitUsage)
	n.says("resources limit jobs mails 3", exitUsage, "--yes", "1 of 1")
	n.says("resources limit jobs mails 3 --yes", exitOK, "limited: mails")
	n.says("resources limit jobs fresh 2 --yes -o json", exitOK, `"limit": 2`, "nobody has used it")
	n.says("jobs list jobs", exitOK, "fresh")
	n.says("resources audit jobs", exitOK, "mails", "1 / 1", "ok")
	n.says("resources forget jobs mails --yes", exitMoved, "in use")
	n.says("resources forget jobs nothing --yes", exitNothing, "nobody has used it")
	n.says("resources forget jobs fresh", exitUsage, "--yes")
	n.says("resources forget jobs fresh --yes", exitOK, "forgotten: fresh")
	n.says("resources forget jobs fresh --yes", exitNothing)

	page, err := n.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: aws.String("jobs")})
	n.is(err)
	for _, row := range page.Items {
		if pk := text(row["pk"]); pk == "JOBS#mails" && text(row["id"]) != n.mail.ID() {
			_, err := n.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("jobs"), Key: map[string]types.AttributeValue{"pk": row["pk"], "sk": row["sk"]}})
			n.is(err)
		}
	}
	n.says("resources audit jobs", exitFound, "wrong", "1 / 0")
	n.says("resources audit jobs -o json", exitFound, `"ok": false`, `"counted"`)
	n.says("resources audit nowhere", exitNothing)
}
