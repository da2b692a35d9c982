package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/ticket"
	"github.com/dynahold/dynahold/txn"
)

// transactionless is the real engine behind a door that knows no transactions, as those of
// ScyllaDB's Alternator.
type transactionless struct{ through dynamodb.HTTPClient }

func (d transactionless) Do(req *http.Request) (*http.Response, error) {
	_, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	if !strings.HasPrefix(op, "Transact") {
		return d.through.Do(req)
	}
	body, err := json.Marshal(map[string]string{"__type": "com.amazonaws.dynamodb.v20120810#UnknownOperationException", "message": "Unsupported operation " + op})
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusBadRequest, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header:        http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Crc32": {fmt.Sprint(crc32.ChecksumIEEE(body))}},
		ContentLength: int64(len(body)), Body: io.NopCloser(strings.NewReader(string(body)))}, nil
}

// On an endpoint without transactions what needs one is told so, by a typed error at its first
// use, and has written nothing; all else works.
func TestEndpointsWithoutTransactions(t *testing.T) {
	t.Parallel()
	f, ctx := fixture.New(t), t.Context()
	client := rig.Client(func(o *dynamodb.Options) { o.HTTPClient = transactionless{o.HTTPClient} })
	table := f.Items(t, client)
	free := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	locked := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	one, two := repo.Key{Partition: "p", Sort: 1}, repo.Key{Partition: "p", Sort: 2}
	add := func(_ context.Context, a *fixture.Account) error { a.Balance++; return nil }
	for _, key := range []repo.Key{one, two} {
		rig.Must(locked.Upsert(ctx, key, add))(t)
	}
	work := rig.Must(jobs.New[string](client, f.Table+"-s", jobs.Config{}))(t)
	rig.Is(t, work.EnsureTable(ctx))
	t.Cleanup(func() {
		_, _ = f.Client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: aws.String(f.Table + "-s")})
	})

	rows := func(name string) any { // but for the token that a lock has taken and given back
		all := rig.Must(f.Client.Scan(ctx, &dynamodb.ScanInput{TableName: &name}))(t).Items
		for _, row := range all {
			delete(row, "lockToken")
		}
		return all
	}
	both := func(in func(*txn.Tx) repo.Repository[fixture.Account]) error {
		return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			if _, err := in(tx).Update(ctx, one, add); err != nil {
				return err
			}
			_, err := free.In(tx).Update(ctx, two, add)
			return err
		})
	}
	for name, call := range map[string]func() error{
		"a transaction": func() error { return both(func(tx *txn.Tx) repo.Repository[fixture.Account] { return free.In(tx) }) },
		"with locks":    func() error { return both(func(tx *txn.Tx) repo.Repository[fixture.Account] { return locked.In(tx) }) },
		"of expressions": func() error {
			return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
				for _, key := range []repo.Key{one, two} {
					if err := free.In(tx).Apply(ctx, key, expression.Add(expression.Name("balance"), expression.Value(1))); err != nil {
						return err
					}
				}
				return nil
			})
		},
		"Enqueue": func() error { _, err := work.Enqueue(ctx, "mails", "x"); return err },
	} {
		items, queue := rows(f.Table), rows(f.Table+"-s")
		err := call()
		rig.Is(t, err, repo.ErrNoTransactions, repo.ErrConfig)
		if repo.VerdictOf(err) != repo.NotWritten || repo.Retryable(err) {
			t.Errorf("%s: %v, retryable %v: %v", name, repo.VerdictOf(err), repo.Retryable(err), err)
		}
		if !reflect.DeepEqual(items, rows(f.Table)) || !reflect.DeepEqual(queue, rows(f.Table+"-s")) {
			t.Errorf("%s: something was written", name)
		}
	}

	rig.Must(free.Update(ctx, one, add))(t)
	rig.Must(locked.Update(ctx, one, add))(t)
	rig.Is(t, txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error { _, err := free.In(tx).Update(ctx, one, add); return err }))
	for name, ensure := range map[string]func() (interface{ EnsureTable(context.Context) error }, func() error, error){
		"mutex": func() (interface{ EnsureTable(context.Context) error }, func() error, error) {
			l, err := mutex.New(client, f.Table+"-l", mutex.Config{})
			return l, func() error { return l.Do(ctx, "n", func(context.Context, *mutex.Lock) error { return nil }) }, err
		},
		"ticket": func() (interface{ EnsureTable(context.Context) error }, func() error, error) {
			q, err := ticket.New(client, f.Table+"-t", ticket.Config{})
			return q, func() error { return q.Do(ctx, "n", func(context.Context, *ticket.Turn) error { return nil }) }, err
		},
		"once": func() (interface{ EnsureTable(context.Context) error }, func() error, error) {
			s, err := once.New(client, f.Table+"-o", once.Config{})
			return s, func() error {
				_, err := once.Do(ctx, s, "n", func(context.Context, once.Run) (int, error) { return 1, nil })
				return err
			}, err
		},
		"semaphore": func() (interface{ EnsureTable(context.Context) error }, func() error, error) {
			s, err := semaphore.New(client, f.Table+"-s", semaphore.Config{})
			return s, func() error {
				p, err := s.Acquire(ctx, "r")
				if err != nil {
					return err
				}
				return p.Release(ctx)
			}, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			of, use, err := ensure()
			rig.Is(t, err)
			rig.Is(t, of.EnsureTable(ctx))
			rig.Is(t, use())
		})
	}
}
