package mutex_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

func TestS2_6_KeysOfEveryType(t *testing.T) {
	for name, c := range map[string]struct {
		key    repo.KeySchema
		lock   any
		other  any
		broken any
	}{
		"string":              {repo.KeySchema{Partition: repo.KeyAttribute{Name: "id"}}, "a", "b", 7},
		"number":              {repo.KeySchema{Partition: repo.KeyAttribute{Name: "id", Type: types.ScalarAttributeTypeN}}, 7, 8.5, "7"},
		"binary":              {repo.KeySchema{Partition: repo.KeyAttribute{Name: "id", Type: types.ScalarAttributeTypeB}}, []byte{0, 1}, []byte{0}, "x"},
		"with a sort key":     {repo.KeySchema{Partition: repo.KeyAttribute{Name: "id"}, Sort: repo.KeyAttribute{Name: "part", Type: types.ScalarAttributeTypeN}}, repo.Key{Partition: "a", Sort: 1}, repo.Key{Partition: "a", Sort: 2}, "a"},
		"named like keywords": {repo.KeySchema{Partition: repo.KeyAttribute{Name: "select"}, Sort: repo.KeyAttribute{Name: "_x-y.z"}}, repo.Key{Partition: "a", Sort: "1"}, repo.Key{Partition: "a", Sort: "2"}, repo.Key{Partition: "a", Sort: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			b := bench{rig.New(t)}
			l := b.locker(t, mutex.Config{Key: c.key, Table: repo.TableConfig{Attributes: repo.Attributes{LockedBy: "holder", LockTime: "until"}}})
			rig.Is(t, l.EnsureTable(t.Context()))
			first := lock(t, l, c.lock)
			_, err := l.TryLock(t.Context(), c.lock)
			rig.Is(t, err, repo.ErrLocked)
			second := lock(t, l, c.other)
			_, err = l.TryLock(t.Context(), c.broken)
			rig.Is(t, err, repo.ErrKey)
			var tokens []int64
			for info, err := range l.List(t.Context()) {
				rig.Is(t, err)
				tokens = append(tokens, info.Token)
				rig.Is(t, l.Break(t.Context(), info.Key, info.Token)) // a listed key is a name
			}
			slices.Sort(tokens)
			want := []int64{first.Token(), second.Token()}
			slices.Sort(want)
			if !slices.Equal(tokens, want) {
				t.Errorf("listed tokens %v, want %v", tokens, want)
			}
		})
	}
}

func TestS2_7_EnsureTable(t *testing.T) {
	b := newBench(t)
	rig.Is(t, b.locker(t, mutex.Config{}).EnsureTable(t.Context())) // it exists
	other := b.locker(t, mutex.Config{Key: repo.KeySchema{Partition: repo.KeyAttribute{Name: "id"}}})
	rig.Is(t, other.EnsureTable(t.Context()), repo.ErrSchema)
	withSort := b.locker(t, mutex.Config{Key: repo.KeySchema{Partition: repo.KeyAttribute{Name: "name"}, Sort: repo.KeyAttribute{Name: "part"}}})
	rig.Is(t, withSort.EnsureTable(t.Context()), repo.ErrSchema)
	missing := rig.Must(mutex.New(b.Client, b.Table+"-none", mutex.Config{}))(t)
	_, err := missing.TryLock(t.Context(), "job")
	rig.Is(t, err, repo.ErrNoTable)
	ttl, err := b.Client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &b.Table})
	rig.Is(t, err)
	rig.Equal(t, aws.ToString(ttl.TimeToLiveDescription.AttributeName), "expiresAt", "TTL is %v", ttl.TimeToLiveDescription)
}

func TestBadSettings(t *testing.T) {
	b := newBench(t)
	for name, cfg := range map[string]mutex.Config{
		"mode":                           {Mode: 7},
		"lease of a fail-closed lock":    {Lease: time.Minute},
		"heartbeat of a fail-closed one": {Heartbeat: time.Second},
		"lease too short":                {Mode: mutex.FailOpen, Lease: time.Millisecond},
		"less than three heartbeats":     {Mode: mutex.FailOpen, Lease: 10 * time.Second, Heartbeat: 4 * time.Second},
		"negative heartbeat":             {Mode: mutex.FailOpen, Heartbeat: -1},
		"a heartbeat without a unit":     {Mode: mutex.FailOpen, Heartbeat: 10},
		"less than three attempts":       {Mode: mutex.FailOpen, Lease: 10 * time.Second, Table: repo.TableConfig{AttemptTimeout: 4 * time.Second}},
		"owner too long":                 {Owner: string(make([]byte, 300))},
		"wait":                           {Wait: repo.Wait{Min: time.Second, Max: time.Millisecond}},
		"key type":                       {Key: repo.KeySchema{Partition: repo.KeyAttribute{Name: "id", Type: "SS"}}},
		"key name taken":                 {Key: repo.KeySchema{Partition: repo.KeyAttribute{Name: "lockedBy"}}},
		"sort key like partition key":    {Key: repo.KeySchema{Partition: repo.KeyAttribute{Name: "id"}, Sort: repo.KeyAttribute{Name: "id"}}},
		"payload name taken":             {Payload: "lockTime"},
		"payload is the key":             {Payload: "name"},
	} {
		if _, err := mutex.New(b.Client, b.Table, cfg); !errors.Is(err, repo.ErrConfig) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := mutex.New(nil, b.Table, mutex.Config{}); !errors.Is(err, repo.ErrConfig) {
		t.Errorf("nil client: error %v", err)
	}
}

func TestBadNames(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, mutex.Config{})
	for _, name := range []any{nil, "", string(make([]byte, 2049)), "\xff", 7, []byte("x"), repo.Key{Partition: "a", Sort: "b"}, struct{}{}} {
		if _, err := l.TryLock(t.Context(), name); !errors.Is(err, repo.ErrKey) {
			t.Errorf("name %.20v: error %v", name, err)
		}
	}
	longest := lock(t, l, string(make([]byte, 2047))+"x")
	rig.Is(t, longest.Unlock(t.Context()))
}
