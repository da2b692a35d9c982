package recipes

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// Register makes a customer, whose e-mail address nobody else has.
func (s *Shop) Register(ctx context.Context, id, email string) error {
	_, err := s.Customers.Create(ctx, Customer{ID: id, Email: email})
	if taken := (*repo.NotUniqueError)(nil); errors.As(err, &taken) {
		return fmt.Errorf("another customer has this %s: %w", taken.Field, err)
	}
	return err
}

// Bill makes an invoice under the next number: none is left out, and none comes twice.
func (s *Shop) Bill(ctx context.Context, customer string) (number int, err error) {
	err = txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		counter, err := s.Counters.In(tx).Upsert(ctx, key("invoices"), func(_ context.Context, c *Counter) error {
			c.Last++
			return nil
		})
		if err != nil {
			return err
		}
		number = counter.Last
		_, err = s.Invoices.In(tx).Create(ctx, Invoice{Number: number, Customer: customer})
		return err
	})
	return number, err
}

// Take gives a customer a seat, and no more than four in all.
func (s *Shop) Take(ctx context.Context, seat, customer string) error {
	return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		_, err := s.Customers.In(tx).Update(ctx, key(customer), func(_ context.Context, c *Customer) error {
			if c.Seats == mostSeats {
				return ErrLimit
			}
			c.Seats++
			return nil
		})
		if err != nil {
			return err
		}
		_, err = s.Seats.In(tx).Update(ctx, key(seat), func(_ context.Context, x *Seat) error {
			if x.Customer != "" {
				return ErrTaken
			}
			x.Customer, x.Paid = customer, true
			return nil
		})
		return err
	})
}
