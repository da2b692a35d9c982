package history_test

import (
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/suite/history"
)

func TestOpenOperationsAreNotChecked(t *testing.T) {
	rec := history.NewRecorder()
	done := rec.Begin(0, history.Get)
	if err := rec.Check(0); !errors.Is(err, history.ErrOpen) {
		t.Errorf("error %v", err)
	}
	done(notFound)
	if err := rec.Check(0); err != nil || rec.Len() != 1 {
		t.Errorf("error %v, %d operations", err, rec.Len())
	}
}

func TestOperationEndsOnce(t *testing.T) {
	done := history.NewRecorder().Begin(0, history.Get)
	done(notFound)
	defer func() {
		if recover() == nil {
			t.Error("it ended twice")
		}
	}()
	done(notFound)
}

// register is a correct item in memory.
type register struct {
	mu    sync.Mutex
	value int64
}

func (r *register) append(entry int64) history.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.value
	r.value = history.Append(old, entry)
	return changed(old, r.value)
}

func TestRecorderInParallel(t *testing.T) {
	rec := history.NewRecorder()
	rec.Begin(0, history.Create)(wrote(0))
	var r register
	var clients sync.WaitGroup
	for client := range 10 {
		clients.Go(func() {
			for i := range 100 {
				done := rec.Begin(client, history.Update)
				done(r.append(int64(client*100 + i)))
			}
		})
	}
	clients.Wait()
	rec.Verify(t, time.Minute)
	if rec.Len() != 1001 {
		t.Errorf("%d operations", rec.Len())
	}
}

// failing notes failures instead of failing.
type failing struct {
	testing.TB
	messages []any
}

func (f *failing) Errorf(_ string, args ...any) { f.messages = args }
func (f *failing) Helper()                      {}

func TestVerifyLeavesAPicture(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	rec := history.NewRecorder()
	rec.Begin(0, history.Get)(read(1))
	f := &failing{TB: t}
	rec.Verify(f, time.Minute)
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) != 1 || len(f.messages) == 0 {
		t.Errorf("left %v, said %v: %v", left, f.messages, err)
	}
}

func TestAppendTellsPastsApart(t *testing.T) {
	seen := map[int64][3]int64{}
	for a := range int64(30) {
		for b := range int64(30) {
			for c := range int64(30) {
				list := history.Append(history.Append(history.Append(0, a), b), c)
				if other, taken := seen[list]; taken {
					t.Fatalf("%v and %v are both %d", other, [3]int64{a, b, c}, list)
				}
				seen[list] = [3]int64{a, b, c}
			}
		}
	}
}
