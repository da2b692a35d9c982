//go:build unix

package main

import (
	"crypto/rand"
	"flag"
	mathrand "math/rand/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/examples/internal/crew"
	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

var (
	killRounds = flag.Int("killrounds", 1, "rounds of TestKilledAndPausedProcesses")
	killSeed   = flag.Uint64("killseed", 0, "seed of its kills and pauses; 0: a new one")
)

// TestKilledAndPausedProcesses kills processes, and stops others for longer
// than a lease, while they hold the lock. The chain stays whole, and what was
// acknowledged is in it once.
func TestKilledAndPausedProcesses(t *testing.T) {
	t.Parallel()
	seed := *killSeed
	if seed == 0 {
		seed = mathrand.Uint64()
	}
	engine, err := localdb.Start(t.Context(), localdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = engine.Close() }()
	var kills, pauses, links int
	for round := range *killRounds {
		s := settings{workers: 6, links: 60, work: time.Millisecond, lease: time.Second}
		name := "killed-" + rand.Text()[:8]
		table, err := repo.NewTable[chain](engine.Client(), name, repo.TableConfig{})
		if err == nil {
			err = table.EnsureTable(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		chains, err := pessimistic.New(table, pessimistic.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := chains.Create(t.Context(), chain{ID: "chain"}); err != nil {
			t.Fatal(err)
		}
		c, err := start(t.Context(), s, name, engine.Endpoint())
		if err != nil {
			t.Fatal(err)
		}
		events, k, p := torment(c, mathrand.New(mathrand.NewPCG(seed, uint64(round)))) // repeatable on purpose
		final, err := chains.Get(t.Context(), chainKey)
		if err != nil {
			t.Fatal(err)
		}
		if faults := final.verify(events); len(faults) > 0 || len(final.Links) != s.links {
			t.Errorf("round %d, -killseed=%d: %d links, %v", round, seed, len(final.Links), faults)
		}
		if len(c.Errs()) > k { // a victim may have ended by itself just before
			t.Errorf("round %d: %d processes killed, ended with an error: %v", round, k, c.Errs())
		}
		kills, pauses, links = kills+k, pauses+p, links+len(final.Links)
		if _, err := engine.Client().DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d kills, %d pauses, %d links, chains intact (-killseed=%d)", kills, pauses, links, seed)
}

// torment kills and pauses holders as they speak. A paused one goes on when
// somebody else has committed: by then its lease is over; or after 5 s of silence.
func torment(c *crew.Crew[event], rng *mathrand.Rand) (events []event, kills, pauses int) {
	paused := ""
	resume := func() {
		if paused != "" {
			_ = c.Resume(paused)
			paused = ""
		}
	}
	dead := map[string]bool{}
	for {
		var e event
		var more bool
		select {
		case e, more = <-c.Heard:
		case <-time.After(5 * time.Second):
			resume() // the others have ended meanwhile: the chain is long enough
			continue
		}
		if !more {
			return events, kills, pauses
		}
		events = append(events, e)
		switch n := rng.IntN(12); {
		case e.Kind == committed && e.Worker != paused:
			resume()
		case e.Kind != acquired || e.Worker == paused || dead[e.Worker]:
		case n == 0 && len(dead) < len(c.Names)-2:
			if c.Kill(e.Worker) == nil {
				dead[e.Worker] = true
				kills++
			}
		case n <= 2 && paused == "":
			if c.Pause(e.Worker) == nil {
				paused = e.Worker
				pauses++
			}
		}
	}
}
