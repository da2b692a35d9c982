package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/examples/internal/crew"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
)

// event is what a dispatcher says on its standard output, as JSON lines.
type event struct {
	Kind        string `json:"kind"` // began, ended, failed or refused
	Who         string `json:"who"`
	Environment string `json:"environment"`
	ID          string `json:"id"`
	Error       string `json:"error,omitempty"`
	Lost        bool   `json:"lost,omitempty"`     // the job was lost meanwhile
	Unlogged    bool   `json:"unlogged,omitempty"` // it was given up before the log had a line of it
}

// open is the semaphore as all processes of the demonstration use it.
func open(client *dynamodb.Client, s settings, table string) (*jobs.Queue[deployment], error) {
	return jobs.New[deployment](client, table+"-work", jobs.Config{
		Lease: s.lease, ClockSkew: 50 * time.Millisecond, Owner: s.dispatcher, Workers: 4,
		Retry: jobs.Retry{Attempts: 3, Min: 100 * time.Millisecond},
		Wait:  repo.Wait{Max: 200 * time.Millisecond},
	})
}

// dispatch is a dispatcher's process: it deploys until it is told to end, or
// its parent is gone.
func dispatch(ctx context.Context, s settings, client *dynamodb.Client) error {
	work, err := open(client, s, s.table)
	if err != nil {
		return err
	}
	to := site{client, s.table + "-site"}
	return work.Run(ctx, func(ctx context.Context, job *jobs.Job[deployment]) error {
		logged, err := deploy(ctx, s.dispatcher, job, to)
		e := event{Kind: ended, Who: s.dispatcher, Environment: job.Resource(), ID: job.Value().ID, Unlogged: !logged}
		e.Lost = job.Context().Err() != nil
		if err == nil && !e.Lost {
			// Run would do this too; done here, it can be said whether the job was
			// still ours, or somebody had taken it over by then.
			e.Lost = job.Done(context.WithoutCancel(ctx)) != nil
		}
		switch {
		case errors.Is(err, errFenced):
			e.Kind, e.Error = refused, errFenced.Error()
		case err != nil:
			e.Kind, e.Error = failed, strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		crew.Say(e)
		return err
	})
}

// deploy is what is done for one job. Its context ends when the job is lost.
// logged says that the log has its beginning.
func deploy(ctx context.Context, who string, job *jobs.Job[deployment], to site) (logged bool, err error) {
	d := job.Value()
	v := visit{what: began, id: d.ID, token: job.Token(), who: who}
	if err := to.log(ctx, d.Environment, v); err != nil {
		return false, err
	}
	crew.Say(event{Kind: began, Who: who, Environment: d.Environment, ID: d.ID})
	defer func() {
		v.what = ended
		if err != nil {
			v.what = failed
		}
		err = errors.Join(err, to.log(context.WithoutCancel(ctx), d.Environment, v))
	}()
	select {
	case <-time.After(time.Duration(d.Millis) * time.Millisecond):
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
	if job.Attempt() <= d.Flaky {
		return true, fmt.Errorf("%s: health check timed out", d.name())
	}
	if d.Needs != "" {
		_, has, err := to.visits(ctx, d.Environment)
		if err != nil {
			return true, err
		}
		if !slices.Contains(has, d.Needs) {
			return true, fmt.Errorf("%s: the environment has no %s", d.name(), d.Needs)
		}
	}
	return true, nil
}
