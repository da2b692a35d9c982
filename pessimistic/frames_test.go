package pessimistic_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// How many functions of the library may stand between a user's call of Update
// and the SDK's UpdateItem. A reader who follows one locked change has to read
// all of them.
const (
	maxAcquireFrames = 10
	maxCommitFrames  = 10
)

// stacks is a client that notes which functions of the library stand on the
// stack when it is asked for a write: the innermost first, closures and inlined
// functions included, those of tests left out.
type stacks struct {
	*dynamodb.Client
	mu     sync.Mutex
	writes [][]string // guarded by mu: one for each UpdateItem
}

func (s *stacks) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	var pcs [128]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	var ours []string
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		name, library := strings.CutPrefix(f.Function, "github.com/dynahold/dynahold/")
		if library && !strings.HasSuffix(f.File, "_test.go") {
			ours = append(ours, name)
		}
	}
	s.mu.Lock()
	s.writes = append(s.writes, ours)
	s.mu.Unlock()
	return s.Client.UpdateItem(ctx, in, o...)
}

func TestALockedChangePassesFewFunctions(t *testing.T) {
	for _, fair := range []bool{false, true} {
		b := rig.New(t)
		client := &stacks{Client: b.Client}
		table := rig.Must(repo.NewTable[stock](client, b.Table, repo.TableConfig{}))(t)
		rig.Is(t, table.EnsureTable(t.Context()))
		r := rig.Must(pessimistic.New(table, pessimistic.Config{Fair: fair}))(t)
		rig.Must(r.Create(t.Context(), stock{ID: "apple", Count: 10}))(t)
		client.writes = nil
		_, err := r.Update(t.Context(), key, func(_ context.Context, s *stock) error { s.Count--; return nil })
		rig.Is(t, err)
		if len(client.writes) != 2 {
			t.Fatalf("%d writes, want the acquire and the commit", len(client.writes))
		}
		for i, most := range []int{maxAcquireFrames, maxCommitFrames} {
			frames := client.writes[i]
			if len(frames) > most || !slices.ContainsFunc(frames, func(f string) bool { return strings.HasPrefix(f, "pessimistic.") }) {
				t.Errorf("fair %v, write %d passes %d functions of the library, want at most %d:\n%s", fair, i, len(frames), most, strings.Join(frames, "\n"))
			}
		}
	}
}
