package jobs

import (
	"slices"

	"github.com/dynahold/dynahold/internal/ddb"
)

// settle gives changes their results. again are those that were not to
// blame that nothing was written; alone says that each should be sent by itself,
// for which of them was to blame is not known.
func settle(all []*change, res ddb.Result) (again []*change, alone bool) {
	at := 0
	for _, c := range all {
		own := at
		at += len(c.writes)
		mine, images := c.share(res, own)
		if len(all) == 1 || c.toBlame(mine.Outcome, images) {
			c.result <- mine
			continue
		}
		c.unclean, c.passed = c.unclean || !res.Clean, c.passed || res.Unjudged
		again = append(again, c)
	}
	return again, len(again) == len(all)
}

// share is the result of one change in a transaction, as if it were alone, and the images
// of its rows and of the resource, where a condition has failed.
func (c *change) share(res ddb.Result, at int) (mine ddb.Result, images []ddb.Image) {
	last := len(res.Images) - 1
	res.Clean, res.Unjudged = res.Clean && c.clean(), res.Unjudged || c.passed
	if end := at + len(c.writes); res.Outcome == ddb.Condition && last >= end {
		images = append(slices.Clone(res.Images[at:end]), res.Images[last])
		res.Images = images
		res.Clean = res.Clean && !c.passed // it may have met a copy of that one
	}
	return res, images
}

// toBlame reports whether a change has a part in what its transaction, with others, has
// come to: all have, but where nothing was written because of others.
func (c *change) toBlame(outcome ddb.Outcome, images []ddb.Image) bool {
	switch {
	case outcome == ddb.Refused:
		return false // of no one is it known
	case outcome != ddb.Condition || images == nil:
		return true
	}
	last := len(images) - 1
	failed := slices.ContainsFunc(images[:last], func(i ddb.Image) bool { return i.Failed })
	return failed || c.start != nil && images[last].Failed
}
