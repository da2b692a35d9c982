// Package record is what watching the locks of a table writes down: JSON lines, each
// an Event, that tell what was seen at which look.
//
// A hold is known only at looks. So each event has two times: that of the look which
// found it, and that of the look before, since when it may have been so. A look that
// finds no change is written down once a minute, and so is the first one after looks
// that failed: then the record of a program that was killed ends within a minute of
// what it knew, and times in which nobody looked show as gaps.
package record
