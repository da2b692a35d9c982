// Package delegation is what decides over commands that one process carries out for others
// (package delegate), and how the evidence stands on an item. It sends nothing.
//
// A sender has a slot, and puts its commands as a mail, with a number that grows, into the
// row of the slot beside the item. Who leads carries out the mail of all with one write of
// the item, which leaves the number and the answers of each slot on the item. An entry
// leaves the item only when the row has the answers in the place of the commands. No clock
// decides.
package delegation
