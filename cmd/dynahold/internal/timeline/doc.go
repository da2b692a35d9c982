// Package timeline tells from records of looks (package record) who held which lock
// when: as a page, as rows of text, and as a document.
//
// A hold is known only at looks. It began after the last look that did not see it, and
// not later than the first one that did; its end is between two looks in the same way. What
// its holder says (when it asked for the lock) and until when its lease was are on the
// holder's clock, all other times on the clock of the machine that watched.
//
// A token is given out once. So a hold that two records show, or one record before and
// after a time without looks, is one hold, and lasted all the time between. Holds that were
// taken by hand have no token: they are one only within one watch.
package timeline
