// Package lockless is what is written by those who hold no lock of the item, and by
// transactions of several items: under which condition, and how it is judged. It is to
// package protocol what these writers are to the lock: all models of them are here.
package lockless
