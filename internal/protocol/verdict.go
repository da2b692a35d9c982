package protocol

import "github.com/dynahold/dynahold/internal/stored"

// Verdict is the final word on a write of a lock's holder.
type Verdict int

// The verdicts. The zero value claims nothing.
const (
	Undecided Verdict = iota // no evidence is left
	Committed                // applied
	Expired                  // not applied: the lease ran out, nobody took over yet
	Lost                     // not applied, for ever: somebody else ended the hold
)

// Holder is what a holder knows of its hold.
type Holder struct {
	ID    string
	Token int64
	Seen  int64 // the last lockToken that it saw on the item; at least Token
}

// lifeSpan is how many tokens and numbers are taken to be given out between the
// holder's last look and its verdict. Those of one life of an item are
// consecutive, while a new life starts at the microsecond of its first lock, so
// a token further ahead than this belongs to an item that was deleted and made
// anew.
//
// It is a millisecond of tokens, less than a hold and its end take. With more, two
// takers in turn who had both seen a third holder would both begin right above it where
// the lives were short, and have the same token. With more hands than this while an
// answer was lost, seconds of them where no hand takes a request less, a verdict may be
// missing that the image could have given: it is unknown then, and never a wrong one.
const lifeSpan = 1_000

// JudgeCommit judges the failed condition of a holder's write that leaves the
// item in place (commit, release, hand-on), from the image. clean says that the
// attempt which failed was the first that can have reached the item.
func JudgeCommit(l stored.Record, h Holder, exists, clean bool) Verdict {
	gone := Undecided
	if clean {
		gone = Lost
	}
	switch {
	case !exists:
		return gone
	case l.By == h.ID && l.Held == h.Token:
		if !clean {
			// An extension without an answer may still land, and then an
			// earlier attempt of this write.
			return Undecided
		}
		return Expired
	case l.Stolen == h.Token, l.Held == h.Token:
		return Lost
	case OtherLife(l, h), l.Stolen < 0, l.Stolen > h.Token:
		return gone
	}
	// The item lives on, we hold it no longer, and whoever takes a hold from
	// its owner writes down its token: only our own write can have ended it.
	return Committed
}

// OtherLife reports whether the item is not the one that the holder held: it was
// deleted, and perhaps made anew, or put as it was before. While it lives on, the
// token that is next is greater than the holder's.
func OtherLife(l stored.Record, h Holder) bool {
	return l.Token <= h.Token || l.Token-max(h.Token, h.Seen) > lifeSpan
}

// JudgeDelete judges the failed condition of a holder's delete. valid says that
// the holder's deadline has not passed: only then nobody else can have ended the
// life of the item.
func JudgeDelete(l stored.Record, h Holder, exists, clean, valid bool) Verdict {
	switch holds := exists && l.By == h.ID && l.Held == h.Token; {
	case holds && clean:
		return Expired
	case holds:
		return Undecided
	case exists && !OtherLife(l, h) && (l.Stolen == h.Token || l.Held == h.Token):
		return Lost
	case valid && (!exists || OtherLife(l, h)):
		return Committed // also where the network resent the request
	case clean:
		return Lost
	}
	return Undecided
}

// JudgeBreak judges the failed condition of an operator's break of the hold
// that was seen, from the image. Committed: the hold was ended by force; nothing tells
// this call's break, of which the network may have made a copy, from another's,
// or from a takeover, and for the holder they are one. Lost: no attempt was
// applied, and none will be.
//
// A hold by hand has no token of its own that could be left as evidence, at most
// that of a holder before it. The break of one leaves the id of its write in the
// ring of writers; marked is what that tells. Without evidence nothing is known:
// who locks by hand may take the lock again under the same name and time, and a
// late attempt finds it as seen.
func JudgeBreak(l, seen stored.Record, marked Verdict, exists, clean bool) Verdict {
	h := Holder{ID: seen.By, Token: seen.Held, Seen: seen.Token}
	switch {
	case !seen.HasToken() && marked == Committed:
		return Committed
	case !seen.HasToken() && clean:
		return Lost
	case !seen.HasToken(), !exists, OtherLife(l, h):
		return Undecided
	case l.Stolen == seen.Held:
		return Committed
	case l.Held == seen.Held, l.Stolen >= 0 && l.Stolen < seen.Held:
		return Lost // it goes on, under a later end or taken over by hand; or its holder has ended it
	}
	return Undecided
}
