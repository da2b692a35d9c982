package main

import (
	"github.com/dynahold/dynahold/examples/internal/report"
)

// audit compares the item with what customers were told. One whose process was killed may
// have been told twice.
func audit(s settings, sold edition, told []verdict) []report.Check {
	twice := report.Check{Name: "no piece is sold twice, no customer has two", Looked: len(sold.Owners)}
	lost := report.Check{Name: "nothing that a customer was told is lost", Looked: len(told)}
	heard := report.Check{Name: "every customer was told, and pieces are left only if all have one", Looked: s.customers}
	owns, asked := map[string]int{}, map[string]bool{}
	for i, customer := range sold.Owners {
		twice.Want(owns[customer] == 0, "%s has the pieces %d and %d", customer, owns[customer], i+1)
		owns[customer] = i + 1
	}
	twice.Want(len(sold.Owners) <= sold.Pieces, "%d pieces are sold of %d", len(sold.Owners), sold.Pieces)
	for _, v := range told {
		n := owns[v.Customer]
		asked[v.Customer] = true
		lost.Want(v.Piece == 0 || v.Piece == n, "%s was told to have piece %d, and has %d", v.Customer, v.Piece, n)
		lost.Want(!v.Before || n > 0, "%s was told to have a piece, and has none", v.Customer)
		lost.Want(!v.SoldOut || n == 0, "%s was told that all are sold, and has %d", v.Customer, n)
	}
	heard.Want(len(asked) == s.customers, "%d customers were told, of %d", len(asked), s.customers)
	for customer, n := range owns {
		heard.Want(asked[customer], "%s has piece %d, and was not told", customer, n)
	}
	heard.Want(len(owns) == min(sold.Pieces, s.customers), "%d pieces of %d are sold, to %d customers", len(owns), sold.Pieces, s.customers)
	return []report.Check{twice, lost, heard}
}
