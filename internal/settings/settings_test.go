package settings

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/repo"
)

// What a setting becomes, or with which word it is refused.
func TestFill(t *testing.T) {
	const ms = time.Millisecond
	span := func(fill func(*time.Duration) Fill) func(time.Duration) (any, error) {
		return func(d time.Duration) (any, error) {
			err := fill(&d)()
			return d, err
		}
	}
	lease := span(Lease)
	skew := span(ClockSkew)
	timeout := func(lease time.Duration) func(time.Duration) (any, error) {
		return span(func(d *time.Duration) Fill { return AttemptTimeout(d, &lease) })
	}
	poll := span(func(d *time.Duration) Fill { return Default("Poll", d, 2*time.Second) })
	for _, c := range []struct {
		name string
		fill func(time.Duration) (any, error)
		give time.Duration
		want time.Duration
		says string // what the error says; "": none
	}{
		{"lease", lease, 0, 30 * time.Second, ""},
		{"lease", lease, time.Second, time.Second, ""},
		{"lease", lease, 24 * time.Hour, 24 * time.Hour, ""},
		{"lease", lease, time.Second - 1, 0, "Lease is 999.999999ms: use 1s to 24h0m0s"},
		{"lease", lease, 24*time.Hour + 1, 0, "Lease is 24h"},
		{"lease", lease, -1, 0, "Lease is -1ns"},
		{"skew", skew, 0, time.Second, ""},
		{"skew", skew, 5 * time.Second, 5 * time.Second, ""},
		{"skew", skew, -1, 0, ""},
		{"skew", skew, 24 * time.Hour, 24 * time.Hour, ""},
		{"skew without a unit", skew, 2, 0, "ClockSkew is 2ns: use a millisecond at least"},
		{"skew without an end", skew, 1<<63 - 1, 0, "ClockSkew is 2562047h47m16.854775807s: use 24h0m0s at most"},
		{"time-out without end", timeout(0), 0, 0, ""},
		{"time-out", timeout(30 * time.Second), 0, 10 * time.Second, ""},
		{"time-out", timeout(3 * time.Second), 0, time.Second, ""},
		{"time-out", timeout(3 * time.Second), time.Second + 1, 0, "Lease (3s) is shorter than three times Table.AttemptTimeout"},
		{"other", poll, 0, 2 * time.Second, ""},
		{"other", poll, ms, ms, ""},
		{"other", poll, -ms, 0, "Poll is negative (-1ms)"},
		{"without a unit", poll, 30, 0, "Poll is 30ns: use a millisecond at least"},
	} {
		got, err := c.fill(c.give)
		if c.says == "" && (err != nil || got != c.want) {
			t.Errorf("%s %v: %v, %v, want %v", c.name, c.give, got, err, c.want)
		}
		if c.says != "" && (!errors.Is(err, repo.ErrConfig) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s %v: %v, want ErrConfig saying %q", c.name, c.give, err, c.says)
		}
	}
	for _, c := range []struct {
		give, want repo.Wait
		says       string
	}{
		{repo.Wait{}, repo.Wait{Min: 5 * ms, Max: 500 * ms}, ""},
		{repo.Wait{Min: time.Second}, repo.Wait{Min: time.Second, Max: time.Second}, ""},
		{repo.Wait{Max: 2 * ms, Attempts: 3}, repo.Wait{Min: 2 * ms, Max: 2 * ms, Attempts: 3}, ""},
		{repo.Wait{Min: 2 * ms, Max: ms}, repo.Wait{}, "Wait.Max (1ms) is less than Wait.Min (2ms)"},
		{repo.Wait{Min: -1}, repo.Wait{}, "Wait.Min is negative"},
		{repo.Wait{Max: -1}, repo.Wait{}, "Wait.Max is negative"},
		{repo.Wait{Min: 10}, repo.Wait{}, "Wait.Min is 10ns: use a millisecond at least"},
		{repo.Wait{Max: 50}, repo.Wait{}, "Wait.Max is 50ns: use a millisecond at least"},
		{repo.Wait{Attempts: -1}, repo.Wait{}, "Wait.Attempts is negative"},
	} {
		got := c.give
		err := Wait(&got, LeastWait)()
		if c.says == "" && (err != nil || got != c.want) {
			t.Errorf("%+v: %+v, %v, want %+v", c.give, got, err, c.want)
		}
		if c.says != "" && (!errors.Is(err, repo.ErrConfig) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: %v, want ErrConfig saying %q", c.give, err, c.says)
		}
	}
}

// The first wrong setting is the error; those behind it are not filled in.
func TestFillAllEndsAtTheFirst(t *testing.T) {
	lease, workers, poll := time.Duration(0), -1, time.Duration(0)
	err := FillAll(Lease(&lease), Default("Workers", &workers, 8), Default("Poll", &poll, 1))
	if err == nil || !strings.Contains(err.Error(), "Workers") || lease != DefaultLease || poll != 0 {
		t.Errorf("%v, lease %v, poll %v", err, lease, poll)
	}
}
