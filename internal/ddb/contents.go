package ddb

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

// contents are what the SDK notes about an output, and whether it has what such a request
// is always answered with: there is a page if nothing was found, too.
func contents(out any) (result middleware.Metadata, whole bool) {
	switch out := out.(type) {
	case *dynamodb.GetItemOutput:
		return out.ResultMetadata, true
	case *dynamodb.QueryOutput:
		return out.ResultMetadata, out.Items != nil
	case *dynamodb.ScanOutput:
		return out.ResultMetadata, out.Items != nil
	case *dynamodb.BatchGetItemOutput:
		return out.ResultMetadata, out.Responses != nil || len(out.UnprocessedKeys) > 0
	case *dynamodb.DescribeTableOutput:
		return out.ResultMetadata, out.Table != nil
	case *dynamodb.CreateTableOutput:
		return out.ResultMetadata, out.TableDescription != nil
	case *dynamodb.DescribeTimeToLiveOutput:
		return out.ResultMetadata, out.TimeToLiveDescription != nil
	case *dynamodb.UpdateTimeToLiveOutput:
		return out.ResultMetadata, true
	}
	return result, true
}
