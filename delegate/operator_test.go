package delegate_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// An operator sees who leads and what waits, and takes out what nobody carries out. Its
// sender, who lives, is told that it is not applied, and it never is.
func TestAnOperatorTakesOutWhatWaits(t *testing.T) {
	b := rig.New(t)
	first := start(t, b.Client, b.Table)
	keys := first.items.Table().KeyTable
	rig.Is(t, keys.EnsureTable(t.Context()))
	rig.Must(first.items.Create(t.Context(), list{Shop: "s", ID: "list"}))(t)
	mails := rig.Must(delegate.MailsOf(keys, nil))(t)
	if s := rig.Must(mails.Of(t.Context(), key))(t); s.Leader != "" || s.Partitions != 0 || len(s.Waiting) != 0 {
		t.Errorf("nobody has come, and there is %+v", s)
	}
	_, err := mails.Of(t.Context(), repo.Key{Partition: "s", Sort: "other"})
	rig.Is(t, err, repo.ErrNotFound)

	// A leader that writes no more, and a sender that reads nothing until the test lets it.
	client, copier := rig.Copied()
	stuck, posted, on := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var found sync.Once // there are two partitions
	lone := true
	copier.On(func(one *fault.Copy) (*http.Response, error) {
		if one.Op == "UpdateItem" && lone {
			lone = false
			p := start(t, b.Client, b.Table)
			rig.Must(p.items.Update(t.Context(), key, func(_ context.Context, l *list) error { l.Others++; return nil }))(t)
		}
		select {
		case <-stuck: // nor does it step down
			<-on
		default:
			if one.Op == "Query" {
				found.Do(func() { close(stuck) })
				<-on
			}
		}
		return nil, nil
	})
	leader := start(t, client, b.Table)
	rig.Must(leader.add.Do(t.Context(), key, "leads"))(t)
	<-stuck
	slow, holder := rig.Copied()
	after := false
	holder.On(func(one *fault.Copy) (*http.Response, error) {
		switch {
		case one.Op == "UpdateItem" && strings.Contains(string(one.Body), "mailItem"):
			answer, err := one.Deliver()
			after = true
			close(posted)
			return answer, err
		case one.Op == "GetItem" && after:
			<-on
		}
		return nil, nil
	})
	sender := start(t, slow, b.Table)
	told := make(chan error)
	go func() { _, err := sender.add.Do(t.Context(), key, "waits"); told <- err }()
	<-posted
	s := rig.Must(mails.Of(t.Context(), key))(t)
	if s.Leader == "" || s.Partitions == 0 || len(s.Waiting) != 1 || s.Waiting[0].Late || strings.Join(s.Waiting[0].Commands, " ") != "add/v1" {
		t.Fatalf("%+v", s)
	}
	w := s.Waiting[0]
	rig.Is(t, mails.TakeOut(t.Context(), key, w.Slot, w.Number+1), repo.ErrNotFound)
	rig.Is(t, mails.TakeOut(t.Context(), key, w.Slot, w.Number))
	if s = rig.Must(mails.Of(t.Context(), key))(t); len(s.Waiting) != 0 {
		t.Errorf("%+v", s)
	}
	close(on)
	if err := <-told; err == nil || errors.Is(err, repo.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "operator") {
		t.Errorf("the sender is told: %v", err)
	}
	for _, p := range []*process{leader, sender} {
		rig.Is(t, p.all.Close(t.Context()))
	}
	if got := rig.Must(first.items.Get(t.Context(), key))(t); len(got.Ops) != 1 || got.Ops[0] != "leads" {
		t.Errorf("%+v", got)
	}
}
