package jobs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
)

// loud says what it does not like in a value.
type loud struct{ Text string }

func (l *loud) UnmarshalJSON(text []byte) error {
	if strings.Contains(string(text), "panic") {
		panic(string(text))
	}
	return fmt.Errorf("bad value %s", text)
}

// What a job has is in no error, no log, and no dead letter's reason, if it cannot be read.
func TestAValueThatCannotBeReadIsWithheld(t *testing.T) {
	for name, c := range map[string]struct {
		value string
		next  func(client jobs.Client, table string, cfg jobs.Config) (string, error)
	}{
		"a text for a time":   {`{"at":"hush"}`, reader[struct{ At time.Time }](t)},
		"a text for a number": {`{"at":"hush"}`, reader[struct{ At int }](t)},
		"a number too large":  {`{"at":47110815}`, reader[struct{ At int8 }](t)},
		"what decodes itself": {`"hush"`, reader[loud](t)},
		"what panics":         {`"panic hush"`, reader[loud](t)},
	} {
		t.Run(name, func(t *testing.T) {
			r := rig.New(t)
			var log bytes.Buffer
			cfg := jobs.Config{Retry: jobs.Retry{Attempts: 1}, Table: repo.TableConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))}}
			producer := rig.Must(jobs.New[json.RawMessage](r.Client, r.Table, cfg))(t)
			rig.Is(t, producer.EnsureTable(t.Context()))
			_ = rig.Must(producer.Enqueue(t.Context(), "r", json.RawMessage(c.value)))(t)
			dead, err := c.next(r.Client, r.Table, cfg)
			if !errors.Is(err, jobs.ErrNoWork) || !strings.Contains(log.String(), "dynahold.job.quarantined") {
				t.Errorf("%v; the log has %s", err, log.String())
			}
			for _, text := range []string{fmt.Sprintf("%+v", err), dead, log.String()} {
				if strings.Contains(text, "hush") || strings.Contains(text, "47110815") {
					t.Error(text)
				}
			}
		})
	}
}

// reader starts the job of a resource, and then reads its dead letter.
func reader[J any](t *testing.T) func(jobs.Client, string, jobs.Config) (string, error) {
	return func(client jobs.Client, table string, cfg jobs.Config) (string, error) {
		s := rig.Must(jobs.New[J](client, table, cfg))(t)
		_, err := s.Next(t.Context(), "r")
		dead := ""
		for letter, unread := range s.Dead(t.Context(), "r") {
			dead += fmt.Sprint(letter.Error, unread)
		}
		if dead == "" {
			t.Error("there is no dead letter")
		}
		return dead, err
	}
}

func TestAnOptionThatIsNilIsRefused(t *testing.T) {
	r := rig.New(t)
	s := rig.Must(jobs.New[string](r.Client, r.Table, jobs.Config{}))(t)
	_, err := s.Enqueue(t.Context(), "r", "x", jobs.WithID("a"), nil)
	rig.Is(t, err, repo.ErrConfig)
}

func TestATallyOfABusyResourceFindsNothingWrong(t *testing.T) {
	busy := jobs.Tally{Resource: jobs.Resource{Name: "r", Queued: 3}, Changing: true}
	if !busy.OK() || !strings.Contains(busy.String(), "changing") || fmt.Sprintf("%+v", busy) != busy.String() {
		t.Errorf("%v", busy)
	}
	if busy.Changing = false; busy.OK() {
		t.Errorf("%v", busy)
	}
}
