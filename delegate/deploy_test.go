package delegate_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
)

// Programs that do not know a command run beside one that does: they leave it to its
// caller, whoever leads, and nothing is lost.
func TestProgramsThatDoNotKnowACommand(t *testing.T) {
	b := rig.New(t)
	const old, each = 4, 15
	first := open(t, b)
	rig.Must(first.items.Create(t.Context(), product{Shop: "s", ID: "apple", Stock: old * each}))(t)
	var all sync.WaitGroup
	for range old {
		p := open(t, b.Peer())
		all.Go(func() {
			for range each {
				if _, err := p.take.Do(t.Context(), apple, take{1}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	fresh := open(t, b.Peer())
	put := rig.Must(delegate.Command(fresh.all, "put/v2", func(_ context.Context, p *product, n int) (int, error) {
		p.Stock += n
		return p.Stock, nil
	}))(t)
	all.Go(func() {
		for range each {
			if _, err := put.Do(t.Context(), apple, 2); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	if got := first.stock(t); got != 2*each {
		t.Errorf("%d are left, %d were put", got, 2*each)
	}
}

// Where the answers are long they are found in rows, and so is that a leader does not know the
// command: its caller carries it out then, while that leader goes on.
func TestAProgramThatDoesNotKnowACommandSaysSoInRows(t *testing.T) {
	t.Parallel()
	b, _ := withList(t)
	b.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
		began, over := time.Now(), 3*time.Second
		process := func() *process {
			return start(t, rig.Client(rig.Over(&rig.Mortal{Next: network, Latency: 2 * time.Millisecond})), b.Table)
		}
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for n := range 6 {
			p := process()
			wide := p.wide(t)
			all.Go(func() {
				for i := 0; ctx.Err() == nil && time.Since(began) < over; i++ {
					rig.Must(wide.Do(context.Background(), key, fmt.Sprint(n, "-", i)))(t)
				}
				rig.Is(t, p.all.Close(context.Background()))
			})
		}
		time.Sleep(time.Second)
		p := process()
		fresh := rig.Must(delegate.Command(p.all, "fresh/v2", func(_ context.Context, l *list, op string) (string, error) {
			l.Others++
			return strings.ToUpper(op), nil
		}))(t)
		rig.Equal(t, rig.Must(fresh.Do(t.Context(), key, "op"))(t), "OP", "the result")
		if took := time.Since(began); took >= 2*time.Second {
			t.Errorf("the caller had to wait until %v, the others went on until %v", took, over)
		}
		stop()
		rig.Is(t, p.all.Close(t.Context()))
		all.Wait()
	})
}
