package recipes

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// Move changes a customer and says so elsewhere: the message is sent if, and only if, the
// change is there. Run a handler that sends it, under job.ID().
func (s *Shop) Move(ctx context.Context, customer, email string) error {
	return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		_, err := s.Customers.In(tx).Update(ctx, key(customer), func(_ context.Context, c *Customer) error {
			c.Email = email
			return nil
		})
		if err != nil {
			return err
		}
		_, err = s.Work.In(tx).Enqueue(ctx, "outbox", Work{Customer: customer})
		return err
	})
}

// Reports has a report made each morning, once over all processes.
func (s *Shop) Reports() error {
	morning, err := jobs.Cron("CRON_TZ=Europe/Berlin 0 6 * * *")
	if err != nil {
		return err
	}
	s.Work.Periodic("report", morning, func(tick time.Time) (resource string, work Work, err error) {
		return "reports", Work{Tick: tick.Format(time.DateOnly)}, nil
	})
	return nil
}

// Deposit is an HTTP handler that may be called again with the same key, and is then
// answered as before; with another amount it is refused.
func (s *Shop) Deposit(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<10))
	amount, errAmount := strconv.Atoi(string(body))
	customer, id := r.PathValue("customer"), r.Header.Get("Idempotency-Key") // who asks was checked before
	if err != nil || errAmount != nil || id == "" {
		http.Error(w, "an amount and an Idempotency-Key, please", http.StatusBadRequest)
		return
	}
	hash := sha256.Sum256(body)
	c, err := s.Customers.Once(customer+"/"+id).WithFingerprint(hash[:]).Update(r.Context(), key(customer), func(_ context.Context, c *Customer) error {
		c.Balance += amount
		return nil
	})
	switch {
	case errors.Is(err, repo.ErrMismatch):
		http.Error(w, "this key is that of another request", http.StatusUnprocessableEntity)
	case err != nil: // the same request again finds out
		http.Error(w, "please try again", http.StatusServiceUnavailable)
	default:
		_, _ = io.WriteString(w, strconv.Itoa(c.Balance))
	}
}

// Charge is a step of a saga: the bank is asked once for an order, whoever dies meanwhile.
func (s *Shop) Charge(ctx context.Context, order string, bank func(ctx context.Context, key string) (receipt string, err error)) (string, error) {
	return once.Do(ctx, s.Steps, "charge/"+order, func(ctx context.Context, run once.Run) (string, error) {
		return bank(ctx, run.ID) // its own idempotency key: a run may die behind it
	})
}

// Visit counts, in one request, however many do.
func (s *Shop) Visit(ctx context.Context, page string) error {
	_, err := s.Counters.Apply(ctx, key(page), expression.Add(expression.Name("last"), expression.Value(1)))
	return err
}

// Lead runs lead in one process at a time; storage refuses tokens below the greatest seen.
func (s *Shop) Lead(ctx context.Context, lead func(ctx context.Context, token int64) error) error {
	return s.Locks.Do(ctx, "leader", func(ctx context.Context, lock *mutex.Lock) error {
		return lead(ctx, lock.Token())
	})
}
