package main

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

type guest struct {
	ID    string `dynamodbav:"id" repo:"pk"`
	Email string `dynamodbav:"email" repo:"unique"`
	Room  string `dynamodbav:"room" repo:"unique=place"`
	Bed   int    `dynamodbav:"bed" repo:"unique=place"`
}

// A table that has items is claimed, told of doubles, and can be claimed again.
func TestUniqueValuesAreClaimed(t *testing.T) {
	n := newNight(t)
	table, err := repo.NewTable[guest](n.client, "guests", repo.TableConfig{})
	n.is(err)
	n.is(table.EnsureTable(t.Context()))
	guests, err := pessimistic.New(table, pessimistic.Config{})
	n.is(err)
	const flags = " --of email --of place=room,bed"
	n.says("unique list guests", exitOK, "no claim")
	n.says("unique check guests"+flags, exitOK, "nothing is wrong")
	_, err = guests.Create(t.Context(), guest{ID: "ann", Email: "a@x", Room: "1", Bed: 1})
	n.is(err)
	n.says("unique list guests", exitOK, "email", "place", `{"ann"}`)
	n.says("unique list guests -o json", exitOK, `"field": "email"`, `"partition": "ann"`)
	n.says("unique check guests"+flags, exitOK)
	byHand := func(id, email, room string) {
		n.put("guests", map[string]types.AttributeValue{"id": word(id), "email": word(email), "room": word(room), "bed": &types.AttributeValueMemberN{Value: "1"}})
	}
	byHand("bob", "b@x", "2") // as by a program of before
	byHand("cid", "a@x", "3")
	n.says("unique check guests"+flags, exitFound, `{"bob"}`, "has no claim", `{"cid"}`, "has the value of another item", `{"ann"}`, "claims that are not right: 4")
	n.says("unique repair guests"+flags, exitUsage, "--yes", "email; place=room,bed", "items without their claim  3", "doubles, which stay        1")
	if code, _, errs := n.call("n\n", "unique repair guests"+flags); code != exitFailed || !strings.Contains(errs, "not agreed to") {
		t.Errorf("code %d, %s", code, errs)
	}
	n.says("unique claim guests"+flags+" --yes -o json", exitFound, `"state": "double"`, `"owner"`, `"mended": true`, "claims that are not right: 1")
	byHand("cid", "c@x", "3")
	n.says("unique repair guests"+flags+" --yes", exitOK, `{"cid"}`, "yes")
	n.says("unique repair guests"+flags+" --yes", exitOK, "nothing is wrong")
	_, err = n.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("guests"), Key: map[string]types.AttributeValue{"id": word("bob")}})
	n.is(err)
	n.says("unique check guests"+flags, exitFound, "has a claim, and not the value")
	n.says("unique repair guests"+flags+" --yes", exitOK, "has a claim, and not the value")
	n.says("unique list guests", exitOK, "cid")
	if _, err := guests.Create(t.Context(), guest{ID: "dot", Email: "c@x", Room: "9"}); err == nil {
		t.Error("an address that the tool has claimed was given away")
	}
	n.says("unique check guests", exitUsage, "--of")
	n.says("unique check guests --of place=room,", exitUsage)
	n.says("unique check guests --of email --type a=b --type c=d", exitUsage, "--type")
	for _, own := range []string{"id", "who=email,id", "lockedBy", "writers", "uniqueClaim"} {
		n.says("unique repair guests --yes --of "+own, exitUsage, "the library's own")
	}
	n.says("unique check guests --of email --of emial", exitNothing, "emial")
	n.says("unique repair guests --of emial --yes", exitNothing, "emial")
	n.says("unique repair guests --of email --of place=room,bde --yes", exitNothing, "place")
	n.says("unique repair guests --of email --of place=room,bde", exitNothing, "place")
	n.says("unique check guests"+flags, exitOK, "nothing is wrong") // no claim was taken away
	n.says("unique check guests --of email --type kind=gust", exitNothing, "--type")
	n.says("unique check guests --of email --partition-prefix G#", exitNothing)
	n.says("unique check nowhere --of email", exitNothing)
	_, err = n.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("guests"), Key: map[string]types.AttributeValue{"id": word("ann")}})
	n.is(err)
	_, err = n.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("guests"), Key: map[string]types.AttributeValue{"id": word("cid")}})
	n.is(err)
	n.says("unique repair guests"+flags+" --yes", exitOK, "ann", "cid", "has a claim, and not the value") // which is so by any rule
	n.says("unique list guests", exitOK, "no claim")
}

// Only items of the type are looked at that the flags name.
func TestUniqueValuesOfOneType(t *testing.T) {
	n := newNight(t)
	n.put("orders", map[string]types.AttributeValue{"id": word("GUEST#1"), "kind": word("guest"), "email": word("a@x")})
	n.put("orders", map[string]types.AttributeValue{"id": word("STAFF#1"), "kind": word("staff"), "email": word("a@x")})
	n.says("unique repair orders --of email --type kind=guest --yes", exitOK, "guest/email", "GUEST#1", "yes")
	n.says("unique check orders --of email --type kind=guest", exitOK)
	n.says("unique check orders --of email --type kind=staff", exitFound, "staff/email", "STAFF#1", "has no claim")
	n.says("unique repair orders --of email --partition-prefix STAFF# --yes", exitOK, "STAFF#/email", `{"1"}`)
	n.says("unique check orders --of email --partition-prefix STAFF# --sort-prefix x", exitUsage)
}
