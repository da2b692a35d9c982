package main

import (
	"strings"
	"testing"

	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/semaphore"
)

// What ends something by force asks, and hits what was named and nothing else.
func TestForce(t *testing.T) {
	n := newNight(t)
	mail, token := n.mail.ID(), n.field("jobs show jobs mails "+n.mail.ID(), "token")
	waiting := strings.NewReplacer(mail, "")
	n.says("jobs list jobs mails", exitOK, mail, "mailer-4", "waits")
	n.says("jobs show jobs mails "+mail, exitOK, "since", "enqueued", token)
	n.says("jobs cancel jobs mails "+mail+" --yes", exitMoved, "break it first", "mailer-4")
	n.says("jobs break jobs mails "+mail+" --yes", exitUsage, "--token")
	n.says("jobs break jobs mails "+mail+" --yes --token 7", exitMoved, token)
	n.says("jobs break jobs mails nothing --yes --token 7", exitNothing)
	n.says("jobs break jobs mails "+mail+" --token "+token, exitUsage, "--yes")
	if code, _, errs := n.call("n\n", "jobs break jobs mails "+mail+" --token "+token); code != exitFailed || !strings.Contains(errs, "not agreed to") || !strings.Contains(errs, "mailer-4") {
		t.Errorf("code %d, %s", code, errs)
	}
	n.says("jobs break jobs mails "+mail+" --yes -o json --token "+token, exitOK, `"broken"`, waiting.Replace("mailer-4"))
	n.says("jobs break jobs mails "+mail+" --yes --token "+token, exitMoved, "waits")
	n.says("jobs cancel jobs mails "+mail, exitUsage, "--yes")
	n.says("jobs cancel jobs mails "+mail+" --yes", exitOK, "cancelled: "+mail)
	n.says("jobs cancel jobs mails "+mail+" --yes", exitNothing)

	number := n.field("queue list queues printer", "number")
	n.says("queue list queues printer", exitOK, "press-1", "press-2", "Z (")
	n.says("queue evict queues printer --yes", exitUsage, "--number")
	n.says("queue evict queues printer --yes --number 7", exitNothing)
	n.says("queue evict queues printer --number "+number, exitUsage, "--yes")
	n.says("queue evict queues printer --yes --number "+number, exitOK, "evicted: "+number, "press-1")
	n.says("queue list queues printer", exitOK, "press-2", "has the turn")
	n.says("queue evict nowhere printer --yes --number 1", exitNothing)
}

func TestPermitsAndPauses(t *testing.T) {
	n := newNight(t)
	named, err := semaphore.New(n.client, "jobs", semaphore.Config{Owner: "till-3", NamePermits: true})
	n.is(err)
	held, err := named.Acquire(t.Context(), "till")
	n.is(err)
	n.says("permits list jobs till", exitOK, held.ID(), "till-3", "Z (")
	n.says("permits list jobs orders", exitOK, "nobody holds")
	n.says("permits list nowhere nothing", exitNothing)
	n.says("permits break jobs till nothing --yes", exitNothing)
	n.says("permits break jobs till "+held.ID(), exitUsage, "--yes")
	n.says("permits break jobs till "+held.ID()+" --yes", exitOK, "broken: "+held.ID(), "till-3")
	n.says("permits break jobs till "+held.ID()+" --yes", exitNothing)

	n.says("resources pause jobs till", exitUsage, "--yes")
	n.says("resources pause jobs till --yes", exitOK, "paused: till", "not paused")
	n.says("resources pause jobs till --yes -o json", exitOK, `"paused_since": "2`)
	n.says("jobs list jobs", exitOK, "paused since", "Z (")
	if _, err := named.TryAcquire(t.Context(), "till"); err == nil {
		t.Error("a permit of a paused resource")
	}
	n.says("resources resume jobs till --yes", exitOK, "resumed: till", "paused since")
	again, err := named.TryAcquire(t.Context(), "till")
	n.is(err)
	n.is(again.Release(t.Context()))
}

func TestTablesAreCreatedAsTheyAreShown(t *testing.T) {
	n := newNight(t)
	n.says("table create bills", exitUsage, "--partition")
	n.says("table create bills --for mutex --partition id", exitUsage, "leave")
	n.says("table create bills --partition id --sort at:N", exitUsage, "--yes", "at (N)", "expiresAt")
	n.says("table describe bills", exitNothing)
	n.says("table create bills --partition id --sort at:N --yes", exitOK, "created: bills")
	n.says("table describe bills", exitOK, "id (S)", "at (N)", "on expiresAt")
	n.says("table create bills --partition id --yes", exitMoved, "there already")
	n.says("table create deeds --partition id --index byOwner=owner,since:N --index bySize=size:N", exitUsage, "--yes", "byOwner: owner (S), since (N)", "bySize: size (N)")
	n.says("table create deeds --partition id --index byOwner=owner,since:N --index bySize=size:N --yes -o json", exitOK, `"created"`, `"bySize"`)
	n.says("table describe deeds", exitOK, "indexes", "2")
	n.says("table create more --partition id --index byOwner --yes", exitUsage, "INDEX=PARTITION")
	n.says("table create more --partition id --index b=owner --yes", exitUsage, "3 to 255")
	n.says("table create more --for jobs --index byOwner=owner --yes", exitUsage, "leave")
	for _, kind := range []string{"mail", "mutex", "once", "ticket", "semaphore", "jobs"} {
		n.says("table create new-"+kind+" --yes --for "+kind, exitOK, "created", "(S)")
	}
	n.says("locks list new-mutex", exitOK, "nobody holds a lock")
	runs, err := once.New(n.client, "new-once", once.Config{})
	n.is(err)
	n.is(runs.EnsureTable(t.Context()))
	n.says("queue list new-ticket printer", exitOK, "nobody stands")
	n.says("jobs list new-semaphore", exitOK, "no resource")
	n.says("jobs list new-jobs", exitOK, "no resource")
}
