package documents_test

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/ticket"
	"github.com/dynahold/dynahold/txn"
)

// The programs that documents show, so that they are compiled: readme_test.go
// compares them. What follows the comment "// shown" is shown, up to the last
// return.

// Deploy is a job of package semaphore's program.
type Deploy struct{ Version string }

type (
	writeReport  func(ctx context.Context, token int64) error
	printPage    func(ctx context.Context, token int64) error
	deployTo     func(ctx context.Context, environment string, d Deploy) error
	convertVideo func(ctx context.Context) error
)

// The items of the README's order.
type (
	product struct{ Stock int }
	order   struct {
		ID     string
		Amount int
		Lines  []line
	}
	line struct{ SKU string }
)

func (line) take(context.Context, *product) error { return nil }

// Product is the item of the README's change.
type Product struct{ Stock int }

var errSoldOut = errors.New("sold out")

func readmeUpdate(ctx context.Context, products *pessimistic.Repository[Product], n int) error {
	// shown
	apple, err := products.Update(ctx, repo.Key{Partition: "apple"}, func(ctx context.Context, p *Product) error {
		if p.Stock < n {
			return errSoldOut // nothing is written
		}
		p.Stock -= n // nobody else changes this apple meanwhile
		return nil
	})
	_ = apple
	return err
}

func readmeTransaction(ctx context.Context, products *pessimistic.Repository[product], orders *optimistic.Repository[order], order order) error {
	// shown
	err := txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		products, orders := products.In(tx), orders.In(tx)
		for _, line := range order.Lines {
			if _, err := products.Update(ctx, repo.Key{Partition: line.SKU}, line.take); err != nil {
				return err // nothing of the whole is written
			}
		}
		_, err := orders.Create(ctx, order)
		return err
	})
	return err
}

func readmeApply(ctx context.Context, products *pessimistic.Repository[product], n int) error {
	// shown
	stock := expression.Name("stock")
	left, err := products.Apply(ctx, repo.Key{Partition: "apple"},
		expression.Add(stock, expression.Value(-n)),
		stock.GreaterThanEqual(expression.Value(n))) // else repo.ErrCondition, with the item as it is
	_ = left
	return err
}

// inbox is a queue that delivers at least once.
type (
	inbox interface {
		Delete(context.Context, message) error
	}
	message struct{ ID, SKU string }
)

func (message) take(context.Context, *product) error { return nil }

func readmeOnce(ctx context.Context, products *pessimistic.Repository[product], inbox inbox, m message) error {
	// shown
	_, err := products.Once(m.ID).Update(ctx, repo.Key{Partition: m.SKU}, m.take)
	if err != nil {
		return err // the message comes again, and is taken once
	}
	err = inbox.Delete(ctx, m) // if this fails it comes again too, and changes nothing
	return err
}

func packageMutex(ctx context.Context, client mutex.Client, writeReport writeReport) error {
	// shown
	locks, err := mutex.New(client, "locks", mutex.Config{Mode: mutex.FailOpen, Heartbeat: 10 * time.Second})
	if err != nil {
		return err
	}
	err = locks.Do(ctx, "nightly-report", func(ctx context.Context, lock *mutex.Lock) error {
		return writeReport(ctx, lock.Token()) // storage refuses smaller tokens
	})
	return err
}

func packageTicket(ctx context.Context, client repo.Client, printPage printPage) error {
	// shown
	queue, err := ticket.New(client, "queues", ticket.Config{})
	if err != nil {
		return err
	}
	err = queue.Do(ctx, "printer", func(ctx context.Context, turn *ticket.Turn) error {
		return printPage(ctx, turn.Number()) // in the order of asking
	})
	return err
}

func packageSemaphore(ctx context.Context, client repo.Client, convert convertVideo) error {
	// shown
	licenses, err := semaphore.New(client, "permits", semaphore.Config{Limit: 3})
	if err != nil {
		return err
	}
	err = licenses.Do(ctx, "encoder", func(ctx context.Context, p *semaphore.Permit) error {
		return convert(ctx) // three at a time, over all processes
	})
	return err
}

func packageJobs(ctx context.Context, client jobs.Client, deploy deployTo) error {
	// shown
	deploys, err := jobs.New[Deploy](client, "deploys", jobs.Config{})
	if err != nil {
		return err
	}
	if _, err := deploys.Enqueue(ctx, "staging", Deploy{Version: "v7"}); err != nil {
		return err
	}
	err = deploys.Run(ctx, func(ctx context.Context, job *jobs.Job[Deploy]) error {
		return deploy(ctx, job.Resource(), job.Value()) // one at a time for each environment
	})
	return err
}

// parcel is the item of an event.
type parcel struct {
	ID, Place string
	Seen      int64
}

func packagePessimistic(ctx context.Context, table *repo.Table[product]) error {
	// shown
	products, err := pessimistic.New(table, pessimistic.Config{})
	if err != nil {
		return err
	}
	apple, err := products.Update(ctx, repo.Key{Partition: "apple"}, func(ctx context.Context, p *product) error {
		p.Stock-- // nobody else changes this apple meanwhile
		return nil
	})
	_ = apple
	return err
}

func packageOptimistic(ctx context.Context, table *repo.Table[product]) error {
	// shown
	products, err := optimistic.New(table, optimistic.Config{})
	if err != nil {
		return err
	}
	apple, err := products.Update(ctx, repo.Key{Partition: "apple"}, func(ctx context.Context, p *product) error {
		p.Stock-- // runs again, from the item as it is then, if somebody else was first
		return nil
	})
	_ = apple
	return err
}

func packageNolock(ctx context.Context, table *repo.Table[parcel], seen int64) error {
	// shown
	parcels, err := nolock.New(table, nolock.Config{})
	if err != nil {
		return err
	}
	err = parcels.Put(ctx, parcel{ID: "p1", Place: "depot", Seen: seen}) // repo.ErrStale if a later one is there
	return err
}

func packageLockedread(ctx context.Context, table *repo.Table[product]) error {
	// shown
	products, err := lockedread.New(table, lockedread.Config{})
	if err != nil {
		return err
	}
	held, err := products.Acquire(ctx, repo.Key{Partition: "apple"})
	if err != nil {
		return err
	}
	defer held.Release(ctx) //nolint:errcheck // does nothing after Commit
	apple := held.Item()
	apple.Stock-- // under held.Context()
	apple, err = held.Commit(ctx, apple)
	_ = apple
	return err
}

// shop has the repositories of package txn's program.
type shop struct {
	accounts *pessimistic.Repository[product]
	orders   *optimistic.Repository[order]
}

func packageTxn(ctx context.Context, s shop, key repo.Key, charge func(context.Context, *product) error, order order) error {
	// shown
	err := txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		accounts, orders := s.accounts.In(tx), s.orders.In(tx)
		if _, err := accounts.Update(ctx, key, charge); err != nil {
			return err // nothing of the whole is written
		}
		_, err := orders.Create(ctx, order)
		return err
	})
	return err
}

func packageTxnRequire(ctx context.Context, locks *mutex.Locker, reports *optimistic.Repository[order], report order) error {
	// shown
	err := locks.Do(ctx, "nightly-report", func(ctx context.Context, lock *mutex.Lock) error {
		return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			if err := tx.Require(lock); err != nil {
				return err
			}
			_, err := reports.In(tx).Create(ctx, report)
			return err
		})
	})
	return err
}

// payer takes money, once for each id.
type (
	payer interface {
		Charge(ctx context.Context, amount int, id string) (Receipt, error)
	}
	// Receipt is the result.
	Receipt struct{}
)

func packageOnce(ctx context.Context, payments *once.Store, provider payer, order order) error {
	// shown
	receipt, err := once.Do(ctx, payments, order.ID, func(ctx context.Context, run once.Run) (Receipt, error) {
		return provider.Charge(ctx, order.Amount, run.ID) // the provider knows the id too
	})
	_ = receipt
	return err
}

func packageRepo(client repo.Client) error {
	// shown
	cfg := repo.TableConfig{
		EncoderOptions: func(o *attributevalue.EncoderOptions) { o.TagKey, o.UseEncodingMarshalers = "dynamo", true },
		DecoderOptions: func(o *attributevalue.DecoderOptions) { o.TagKey, o.UseEncodingUnmarshalers = "dynamo", true },
	}
	_, err := repo.NewTable[order](client, "orders", cfg)
	return err
}

// The programs are used here so that they stay: nothing calls them.
var _ = []any{
	func() error { return readmeUpdate(context.Background(), nil, 1) },
	func() error { return readmeTransaction(context.Background(), nil, nil, order{}) },
	func() error { return readmeApply(context.Background(), nil, 1) },
	func() error { return readmeOnce(context.Background(), nil, nil, message{}) },
	func(c mutex.Client) error { return packageMutex(context.Background(), c, nil) },
	func(c repo.Client) error { return packageTicket(context.Background(), c, nil) },
	func(c repo.Client) error { return packageSemaphore(context.Background(), c, nil) },
	func(c jobs.Client) error { return packageJobs(context.Background(), c, nil) },
	func() error { return packagePessimistic(context.Background(), nil) },
	func() error { return packageOptimistic(context.Background(), nil) },
	func() error { return packageNolock(context.Background(), nil, 1) },
	func() error { return packageLockedread(context.Background(), nil) },
	func() error { return packageTxn(context.Background(), shop{}, repo.Key{}, nil, order{}) },
	func() error { return packageTxnRequire(context.Background(), nil, nil, order{}) },
	func() error { return packageOnce(context.Background(), nil, nil, order{}) },
	func() error { return packageRepo(nil) },
}
