package main

import (
	"context"
	"errors"
	"time"

	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/txn"
)

type (
	seat struct {
		ID      string `dynamodbav:"id" repo:"pk"`
		Order   string `dynamodbav:"order,omitempty"` // that has it
		Version int64  `dynamodbav:"version" repo:"version"`
	}
	customer struct {
		ID      string `dynamodbav:"id" repo:"pk"`
		Email   string `dynamodbav:"email" repo:"unique"`
		Seats   int    `dynamodbav:"seats"` // of all orders, held or paid
		Version int64  `dynamodbav:"version" repo:"version"`
	}
	order struct {
		ID       string   `dynamodbav:"id" repo:"pk"`
		Customer string   `dynamodbav:"customer"`
		Seats    []string `dynamodbav:"seats"`
		State    string   `dynamodbav:"state"`
		Invoice  int      `dynamodbav:"invoice"` // once it is paid, from 1 without gaps
		Release  string   `dynamodbav:"release"` // the job that gives the seats back
		Version  int64    `dynamodbav:"version" repo:"version"`
	}
	counter struct {
		ID      string `dynamodbav:"id" repo:"pk"`
		Last    int    `dynamodbav:"last"`
		Version int64  `dynamodbav:"version" repo:"version"`
	}
)

const held, paid, expired, mostSeats = "held", "paid", "expired", 4

var (
	errTaken = errors.New("a seat is taken")
	errLimit = errors.New("four seats are enough")
	errGone  = errors.New("the seats are held no more")
)

// register makes a customer, whose e-mail address nobody else has.
func (s *shop) register(ctx context.Context, id, email string) error {
	_, err := s.customers.Create(ctx, customer{ID: id, Email: email})
	return err
}

// hold holds seats for a while, four of a customer at most. A job gives them back.
func (s *shop) hold(ctx context.Context, o order, d time.Duration) error {
	return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) (err error) {
		o.State = held
		if o.Release, err = s.releases.In(tx).Enqueue(ctx, "release", o.ID, jobs.After(d)); err != nil {
			return err
		}
		if _, err := s.orders.In(tx).Create(ctx, o); err != nil {
			return err
		}
		return s.move(ctx, tx, o, len(o.Seats), "", o.ID)
	})
}

// move gives the seats of an order from one to another, and counts them with the customer.
func (s *shop) move(ctx context.Context, tx *txn.Tx, o order, n int, from, to string) error {
	_, err := s.customers.In(tx).Update(ctx, key(o.Customer), func(_ context.Context, c *customer) error {
		if c.Seats += n; c.Seats > mostSeats {
			return errLimit
		}
		return nil
	})
	for _, id := range o.Seats {
		if err != nil {
			return err
		}
		_, err = s.seats.In(tx).Update(ctx, key(id), func(_ context.Context, x *seat) error {
			if x.Order != from {
				return errTaken
			}
			x.Order = to
			return nil
		})
	}
	return err
}

// pay keeps the seats of an order, and makes its invoice. The job goes.
func (s *shop) pay(ctx context.Context, id string) (o order, err error) {
	err = txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		if o, err = s.orders.In(tx).Get(ctx, key(id)); err != nil || o.State == paid {
			return err
		}
		number, err := s.counters.In(tx).Upsert(ctx, key("invoices"), func(_ context.Context, c *counter) error {
			c.Last++
			return nil
		})
		if err != nil {
			return err
		}
		o, err = s.orders.In(tx).Update(ctx, key(id), func(_ context.Context, o *order) error {
			if o.State != held {
				return errGone
			}
			o.State, o.Invoice = paid, number.Last
			return nil
		})
		if err != nil {
			return err
		}
		return s.releases.In(tx).Cancel(ctx, "release", o.Release)
	})
	return o, err
}

// giveBack is the handler of the job.
func (s *shop) giveBack(ctx context.Context, job *jobs.Job[string]) error {
	return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		o, err := s.orders.In(tx).Update(ctx, key(job.Value()), func(_ context.Context, o *order) error {
			o.State = expired // it is not paid, for that would have cancelled the job
			return nil
		})
		if err != nil {
			return err
		}
		if err := s.move(ctx, tx, o, -len(o.Seats), o.ID, ""); err != nil {
			return err
		}
		return job.DoneIn(tx)
	})
}
