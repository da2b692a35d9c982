package mutex_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
)

func TestMain(m *testing.M) { rig.Main(m) }

// bench is a lock table.
type bench struct{ *rig.Rig }

func newBench(t testing.TB) bench {
	t.Helper()
	b := bench{rig.New(t)}
	rig.Is(t, b.locker(t, mutex.Config{}).EnsureTable(t.Context()))
	b.Count.Reset()
	return b
}

func (b bench) locker(t testing.TB, cfg mutex.Config) *mutex.Locker {
	t.Helper()
	return rig.Must(mutex.New(b.Client, b.Table, cfg))(t)
}

func (b bench) row(t testing.TB, name string) map[string]types.AttributeValue {
	t.Helper()
	return b.Item(t, map[string]types.AttributeValue{"name": &types.AttributeValueMemberS{Value: name}})
}

func lock(t testing.TB, l *mutex.Locker, name any) *mutex.Lock {
	t.Helper()
	return rig.Must(l.TryLock(t.Context(), name))(t)
}

// eachMode runs a test in both modes, without and with Fair.
func eachMode(t *testing.T, f func(t *testing.T, b bench, cfg mutex.Config)) {
	for _, mode := range []mutex.Mode{mutex.FailClosed, mutex.FailOpen} {
		t.Run(mode.String(), func(t *testing.T) { f(t, newBench(t), mutex.Config{Mode: mode}) })
		t.Run(mode.String()+", fair", func(t *testing.T) { f(t, newBench(t), mutex.Config{Mode: mode, Fair: true}) })
	}
}

// eachFair runs a test in both modes, with Fair.
func eachFair(t *testing.T, f func(t *testing.T, b bench, cfg mutex.Config)) {
	for _, mode := range []mutex.Mode{mutex.FailClosed, mutex.FailOpen} {
		t.Run(mode.String(), func(t *testing.T) { f(t, newBench(t), mutex.Config{Mode: mode, Fair: true}) })
	}
}
