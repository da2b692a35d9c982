// Package answers shows, by its tests, that answers which are not DynamoDB's prove
// nothing: a matrix of every writing call, each of its requests, and every kind of false
// answer to it, with the request carried out behind it and not.
package answers
