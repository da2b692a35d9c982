// Package typed works on items of users' types without knowing these: an item is a pointer
// in an any. It runs a user's change on a copy ([Snapshot]), and finds what is to be
// written ([Edit]): the difference, what else the write says, and the id of the operation
// ([Once]). It sends nothing but what an id asks of rows beside its item.
package typed
