package load_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/dynahold/dynahold/internal/load"
	"github.com/dynahold/dynahold/internal/rig"
)

// A single worker whose change is one request makes one change per mean
// latency, work and pause. The mean of a log-normal distribution is its median
// times exp(sigma²/2).
func TestVirtualRateIsThatOfTheLatency(t *testing.T) {
	sigma := math.Log(10.0/4) / 2.3263
	mean := 0.004 * math.Exp(sigma*sigma/2)
	for name, c := range map[string]struct {
		workload load.Workload
		each     float64
	}{
		"latency":         {load.Workload{}, mean},
		"work and pause":  {load.Workload{Work: 5 * time.Millisecond, Pause: 50 * time.Millisecond}, mean + 0.055},
		"another latency": {load.Workload{Latency: load.Latency{Median: time.Second, P99: time.Second}, Span: rig.Share(2*time.Minute, 5*time.Minute)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if c.workload.Span == 0 {
				c.workload.Span = rig.Share(2*time.Second, 5*time.Second)
			}
			r := run(t, true, c.workload, adding())
			if ratio := r.Rate * c.each; ratio < 0.97 || ratio > 1.03 {
				t.Errorf("%.1f changes per second, %.1f were to be expected", r.Rate, 1/c.each)
			}
			if want := float64(r.Workload.Latency.Median + c.workload.Work); math.Abs(float64(r.P50)/want-1) > 0.05 {
				t.Errorf("median %v, %v was to be expected", r.P50, time.Duration(want))
			}
		})
	}
}

func TestTheSameSeedGivesTheSameResult(t *testing.T) {
	for _, c := range append(load.Modes(), adding()) {
		if strings.Contains(c.Name, "combine") {
			continue // the goroutine that commits for all may still be at it when its caller comes again
		}
		t.Run(c.Name, func(t *testing.T) {
			w := load.Workload{Items: 20, Zipf: 1.2, Span: rig.Share(100*time.Millisecond, 500*time.Millisecond), Seed: 7}
			first := run(t, true, w, c)
			if diff := cmp.Diff(first, run(t, true, w, c)); diff != "" {
				t.Error(diff)
			}
			w.Seed = 8
			if other := run(t, true, w, c); other.P99 == first.P99 {
				t.Error("another seed changes nothing")
			}
		})
	}
}

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		mode        string
		size        int
		write, read float64
	}{
		{"optimistic", 1 << 10, 1, 1},
		{"optimistic", 10 << 10, 10, 3},
		{"pessimistic", 1 << 10, 2, 0},
		{"pessimistic", 10 << 10, 20, 0},
		{"nolock", 10 << 10, 10, 3},
	} {
		for _, m := range load.Modes() {
			if m.Name != c.mode {
				continue
			}
			r := run(t, true, load.Workload{Size: c.size, Span: 400 * time.Millisecond}, m)
			// A request whose change ends just outside is one of about 50.
			if math.Abs(r.WriteUnits/c.write-1) > 0.05 || math.Abs(r.ReadUnits-c.read) > 0.05*c.read {
				t.Errorf("%s at %d bytes: %.2f write units and %.2f read units, want %v and %v", c.mode, c.size, r.WriteUnits, r.ReadUnits, c.write, c.read)
			}
			if math.Abs(r.Requests-2) > 0.1 || r.Wasted != 0 || math.Abs(r.Requests-r.Reads-r.Writes) > 1e-9 {
				t.Errorf("%s: %+v", c.mode, r)
			}
		}
	}
}

// A turn is one however many changes are made in it; units of the first item
// are counted by themselves.
func TestTurnsAndTheHottestItem(t *testing.T) {
	modes := map[string]load.Contender{}
	for _, m := range load.Modes() {
		modes[m.Name] = m
	}
	w := load.Workload{Processes: 2, Workers: 8, Span: rig.Share(500*time.Millisecond, 2*time.Second)}
	r := run(t, true, w, modes["pessimistic"]) // which hands the lock on within a process
	if most := float64(r.Changes) / 8; r.Turns == 0 || r.Turns > most {
		t.Errorf("%.1f turns for %d changes of 2 processes that make many in each", r.Turns, r.Changes)
	}
	if r.HotWriteUnits != r.WriteUnits || r.HotReadUnits != r.ReadUnits {
		t.Errorf("a single item is the hottest: %+v", r)
	}
	w.Items, w.Zipf = 10, 2
	r = run(t, true, w, modes["optimistic"]) // the first of ten gets 65 % of the changes, and more of the conflicts
	if share := r.HotWriteUnits / r.WriteUnits; share < 0.65 || share > 0.97 || r.HotReadUnits == 0 {
		t.Errorf("%.2f of the units for the hottest item", share)
	}
	w = load.Workload{Processes: 2, Span: 2 * time.Second}
	if r := run(t, true, w, adding()); r.Turns < float64(r.Changes)/8 {
		t.Errorf("%.1f turns for %d changes that nobody waits for", r.Turns, r.Changes)
	}
}

// Failed writes bill the item's size, though no answer says so.
func TestUnitsOfFailedWrites(t *testing.T) {
	for _, size := range []int{100, 1 << 10, 10 << 10} {
		for _, show := range []types.ReturnValuesOnConditionCheckFailure{"", types.ReturnValuesOnConditionCheckFailureAllOld} {
			failing := written("failing", func(ctx context.Context, c *dynamodb.Client, table string, key map[string]types.AttributeValue, _ func(context.Context)) error {
				_, err := c.UpdateItem(ctx, &dynamodb.UpdateItemInput{
					TableName: &table, Key: key,
					UpdateExpression:                    aws.String("REMOVE nothing"),
					ConditionExpression:                 aws.String("attribute_exists(nothing)"),
					ReturnValuesOnConditionCheckFailure: show,
				})
				return err
			})
			r := run(t, true, load.Workload{Size: size, Span: 200 * time.Millisecond}, failing)
			each := math.Ceil(float64(size) / 1024)
			if r.Wasted == 0 || r.Wasted != r.Writes || r.WriteUnits != r.Wasted*each || r.Failed == 0 || r.Lost+r.Extra != 0 {
				t.Errorf("%d bytes, %q: %+v", size, show, r)
			}
		}
	}
}

func TestEnoughEndsTheMeasuredTime(t *testing.T) {
	for name, w := range map[string]load.Workload{"changes": {Enough: 100}, "requests": {Budget: 100}} {
		t.Run(name, func(t *testing.T) {
			w.Workers, w.Span, w.Warmup = 8, time.Hour, 100*time.Millisecond
			r := run(t, true, w, adding())
			// 8 workers make about 185 changes in 100 ms.
			if r.Measured != 100*time.Millisecond || r.Changes < 150 || r.Changes > 220 || math.Abs(r.Rate-10*float64(r.Changes)) > 1e-6 {
				t.Errorf("%d changes in %v, rate %v", r.Changes, r.Measured, r.Rate)
			}
			if n := r.Operations["UpdateItem"]; n < r.Changes-8 || n > r.Changes+8 {
				t.Errorf("%v", r.Operations)
			}
		})
	}
}

// Eight workers of one process of which each has its turn after another one's: the
// measured time goes on past the span, and past enough, until each had its turns.
func TestTurnsProlongTheMeasuredTime(t *testing.T) {
	for name, c := range map[string]struct {
		workload    load.Workload
		least, most time.Duration
	}{
		"past enough":     {load.Workload{Workers: 8, Enough: 1, Turns: 50, Span: time.Hour}, 200 * time.Millisecond, time.Second},
		"past the span":   {load.Workload{Workers: 8, Turns: 50, Span: 100 * time.Millisecond}, 200 * time.Millisecond, 800 * time.Millisecond},
		"not for ever":    {load.Workload{Workers: 8, Turns: 5000, Span: 100 * time.Millisecond}, 800 * time.Millisecond, 800 * time.Millisecond},
		"no need":         {load.Workload{Workers: 8, Turns: 2, Span: 200 * time.Millisecond}, 200 * time.Millisecond, 300 * time.Millisecond},
		"nobody to share": {load.Workload{Turns: 5000, Span: 200 * time.Millisecond}, 200 * time.Millisecond, 200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			c.workload.Warmup = 50 * time.Millisecond
			r := run(t, true, c.workload, adding())
			if r.Measured < c.least || r.Measured > c.most {
				t.Errorf("measured for %v", r.Measured)
			}
			if want := float64(c.workload.Turns); c.workload.Turns <= 50 && r.Turns < want {
				t.Errorf("%v turns, %v were asked for", r.Turns, want)
			}
		})
	}
}
