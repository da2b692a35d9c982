package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// chain is the item that all workers extend. Its links fit into one item of
// 400 KB up to maxLinks.
type chain struct {
	ID    string `dynamodbav:"id" repo:"pk"`
	Links []link `dynamodbav:"links"`
}

// link is one step of the chain. Its hash covers the link before, so a worker
// must read the chain before it can extend it.
type link struct {
	Worker string `dynamodbav:"w" json:"w"`
	N      int    `dynamodbav:"n" json:"n"` // the worker's own count
	Token  int64  `dynamodbav:"t" json:"t"` // fencing token of the hold
	Hash   string `dynamodbav:"h" json:"h"`
}

const maxLinks = 2000

// next makes the link that follows.
func (c *chain) next(worker string, n int, token int64) link {
	l := link{Worker: worker, N: n, Token: token}
	l.Hash = l.sum(c.head())
	return l
}

func (c *chain) head() string {
	if len(c.Links) == 0 {
		return "genesis"
	}
	return c.Links[len(c.Links)-1].Hash
}

func (l link) sum(before string) string {
	h := sha256.Sum256(fmt.Appendf(nil, "%s|%s|%d|%d", before, l.Worker, l.N, l.Token))
	return hex.EncodeToString(h[:])
}

// verify recomputes the chain, and compares it with what the workers said that
// they had committed.
func (c *chain) verify(acknowledged []event) (faults []string) {
	before, token := "genesis", int64(0)
	times := map[string]int{}
	for i, l := range c.Links {
		if want := l.sum(before); l.Hash != want {
			faults = append(faults, fmt.Sprintf("link %d: hash %.8s, recomputed %.8s", i, l.Hash, want))
		}
		if l.Token <= token {
			faults = append(faults, fmt.Sprintf("link %d: token %d after %d", i, l.Token, token))
		}
		before, token = l.Hash, l.Token
		times[l.id()]++
	}
	for id, n := range times {
		if n > 1 {
			faults = append(faults, fmt.Sprintf("%s is in the chain %d times", id, n))
		}
	}
	for _, e := range acknowledged {
		if e.Kind == committed && times[e.id()] != 1 {
			faults = append(faults, fmt.Sprintf("%s was acknowledged and is in the chain %d times", e.id(), times[e.id()]))
		}
	}
	return faults
}

func (l link) id() string { return fmt.Sprintf("%s's link %d", l.Worker, l.N) }
