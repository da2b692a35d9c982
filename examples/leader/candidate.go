package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/examples/internal/crew"
	"github.com/dynahold/dynahold/mutex"
)

// What a candidate says on its standard output, as JSON lines.
const (
	elected = "elected"
	wrote   = "wrote"
	refused = "refused"
	lost    = "lost"
)

type event struct {
	Kind  string    `json:"kind"`
	Who   string    `json:"who"`
	Token int64     `json:"token"`
	At    time.Time `json:"at"`
	Error string    `json:"error,omitempty"`
}

// pace is the time between two writes of a leader.
const pace = 40 * time.Millisecond

// stand is a candidate's process: it waits to be elected, and leads, until it
// is told to end, or its parent is gone.
func stand(ctx context.Context, s settings, client *dynamodb.Client) error {
	locks, err := mutex.New(client, s.table+"-locks", mutex.Config{Mode: mutex.FailOpen, Lease: s.lease, Heartbeat: s.lease / 3,
		Owner: s.candidate, ClockSkew: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	to := ledger{client, s.table + "-ledger"}
	for ctx.Err() == nil {
		lock, err := locks.Lock(ctx, "leader")
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil {
			lead(ctx, s.candidate, lock, to)
		}
	}
	return nil
}

// lead writes to the ledger until the lock is lost.
func lead(ctx context.Context, who string, lock *mutex.Lock, to ledger) {
	tell := func(kind string, err error) {
		e := event{Kind: kind, Who: who, Token: lock.Token()}
		if err != nil {
			e.Error = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		say(e)
	}
	tell(elected, nil)
	for ctx.Err() == nil && lock.Context().Err() == nil {
		// Between the look at the lock and the write a process may stand still
		// for any time: that is what the token is for.
		time.Sleep(pace)
		err := to.write(ctx, lock.Token(), who)
		switch {
		case errors.Is(err, errFenced):
			tell(refused, err)
		case err == nil:
			tell(wrote, nil)
		} // else nobody knows whether it is written: nothing is said of it
	}
	if err := lock.Unlock(ctx); err != nil {
		tell(lost, err)
	}
}

func say(e event) {
	e.At = time.Now()
	crew.Say(e)
}
