package recipes

import (
	"context"
	"time"

	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/txn"
)

// Hold takes a seat for a while. A job gives it back, unless it is paid before.
func (s *Shop) Hold(ctx context.Context, seat, customer string, d time.Duration) error {
	return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		job, err := s.Work.In(tx).Enqueue(ctx, "release", Work{Seat: seat, Customer: customer}, jobs.After(d))
		if err != nil {
			return err
		}
		_, err = s.Seats.In(tx).Update(ctx, key(seat), func(_ context.Context, x *Seat) error {
			if x.Customer != "" {
				return ErrTaken
			}
			x.Customer, x.Release = customer, job
			return nil
		})
		return err
	})
}

// Pay keeps a seat that is held, and takes the job out.
func (s *Shop) Pay(ctx context.Context, seat, customer string) error {
	return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		job := ""
		_, err := s.Seats.In(tx).Update(ctx, key(seat), func(_ context.Context, x *Seat) error {
			if x.Customer != customer || x.Paid {
				return ErrGone
			}
			x.Paid, job, x.Release = true, x.Release, ""
			return nil
		})
		if err != nil {
			return err
		}
		return s.Work.In(tx).Cancel(ctx, "release", job)
	})
}

// GiveBack is the job's handler.
func (s *Shop) GiveBack(ctx context.Context, job *jobs.Job[Work]) error {
	return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		_, err := s.Seats.In(tx).Update(ctx, key(job.Value().Seat), func(_ context.Context, x *Seat) error {
			if x.Release == job.ID() {
				x.Customer, x.Release = "", ""
			}
			return nil
		})
		if err != nil {
			return err
		}
		return job.DoneIn(tx)
	})
}
