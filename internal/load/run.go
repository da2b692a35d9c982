package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/bridge"
)

// lines bounds the requests that are in the engine at one moment of virtual time, which
// are few: every request arrives at its own moment.
const lines = 16

// Options say how a workload is run.
type Options struct {
	// Virtual runs it in virtual time: latency, work and pauses pass at once,
	// and the clock stands still while the engine and the processor work.
	Virtual bool
	// Progress is told now and then which share of the run is over, from 0 to
	// 1, in real time and never after Run has returned. Optional.
	Progress func(done float64)
}

// Run lets a contender work and checks the result. An error means that there
// is none: the engine did not start, a contender did not open, ctx ended. Lost
// and doubled changes are no error but part of the result.
func (h *Harness) Run(ctx context.Context, w Workload, c Contender, o Options) (Result, error) {
	w, err := w.withDefaults()
	if err != nil {
		return Result{}, err
	}
	if w.Partition && !o.Virtual {
		return Result{}, errors.New("load: the limits of a partition are there in virtual time only")
	}
	engine, err := h.start(ctx)
	if err != nil {
		return Result{}, err
	}
	from := engine.Client()
	who, err := from.Options().Credentials.Retrieve(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("load: credentials: %w", err)
	}
	table, err := makeCounters(ctx, from, w, c.Prepare)
	if err != nil {
		return Result{}, err
	}
	crew := &crew{workload: w, contender: c, table: table.name, from: from, who: who, virtual: o.Virtual, outer: ctx, tally: newTally(w.Size)}
	stop := crew.observe(o)
	if o.Virtual {
		out := bridge.New(from.Options().HTTPClient, lines)
		crew.transport = func() aws.HTTPClient { return out }
		err = h.bubble(c.Name, crew.run)
		out.Close()
	} else {
		var all connections
		crew.transport = func() aws.HTTPClient { return all.open(from.Options().HTTPClient) }
		err = crew.run()
		all.close()
	}
	stop()
	var result Result
	if err == nil {
		result, err = crew.result(ctx, table)
	}
	if err = errors.Join(err, table.drop(ctx, c.Beside...)); err != nil {
		return Result{}, fmt.Errorf("%s: %w", c.Name, err)
	}
	result.Virtual = o.Virtual
	return result, nil
}

// connections are those of the processes in real time: each has its own.
type connections []*http.Client

func (c *connections) open(shared dynamodb.HTTPClient) aws.HTTPClient {
	client, ok := shared.(*http.Client)
	if !ok {
		return shared
	}
	transport, ok := client.Transport.(*http.Transport)
	if !ok {
		return shared
	}
	own := *client
	own.Transport = transport.Clone()
	*c = append(*c, &own)
	return &own
}

func (c connections) close() {
	for _, client := range c {
		client.CloseIdleConnections()
	}
}
