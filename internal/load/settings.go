package load

import (
	"errors"
	"time"
)

// withDefaults fills in what is not set and refuses what makes no sense.
func (w Workload) withDefaults() (Workload, error) {
	for _, n := range []*int{&w.Processes, &w.Workers, &w.Items, &w.Touches} {
		if *n == 0 {
			*n = 1
		}
	}
	if w.Size == 0 {
		w.Size = 1024
	}
	if w.Span == 0 {
		w.Span = 2 * time.Second
	}
	if w.Warmup == 0 {
		w.Warmup = w.Span / 5
	}
	if w.Latency.Median == 0 && w.Latency.P99 == 0 {
		w.Latency.Median, w.Latency.P99 = 4*time.Millisecond, 10*time.Millisecond
	}
	switch {
	case w.Processes < 0, w.Workers < 0, w.Items < 0, w.Touches < 0, w.Size < 0, w.Turns < 0, w.Enough < 0, w.Budget < 0:
		return w, errors.New("load: a number in the workload is negative")
	case w.Work < 0, w.Pause < 0, w.Every < 0, w.Warmup < 0, w.Span < 0:
		return w, errors.New("load: a time in the workload is negative")
	case w.Size > maxSize:
		return w, errors.New("load: an item can have 390 KB: DynamoDB takes 400, and contenders add to it")
	case w.Touches > w.Items:
		return w, errors.New("load: a change touches more items than there are")
	case w.Held && (w.Touches > 1 || w.Makes):
		return w, errors.New("load: who holds items without changing them holds one")
	case w.Zipf != 0 && w.Zipf <= 1:
		return w, errors.New("load: the skew must be above 1, or 0 for none")
	case w.Latency.Median <= 0, w.Latency.P99 < w.Latency.Median:
		return w, errors.New("load: the latency's 99th percentile is below its median")
	case w.Latency.Stall < 0:
		return w, errors.New("load: requests stall for less than no time")
	}
	return w, nil
}

const maxSize = 390 << 10
