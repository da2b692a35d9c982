// Package foreign shows, by its tests, what becomes of attributes that have one
// of the library's names and are not the library's: under every operation they
// are neither believed nor overwritten.
package foreign
