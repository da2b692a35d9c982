// Package direct is a client for Dynahold that costs less of the processor's time: it
// sends GetItem and UpdateItem without the SDK's middleware. Off unless asked for, and a
// module of its own.
//
//	client := dynamodb.NewFromConfig(cfg)
//	sender, err := direct.Client(client)
//	if err != nil {
//		return err // errors.Is(err, direct.ErrOption): use client itself
//	}
//	table, err := repo.NewTable[Product](sender, "products", repo.TableConfig{})
//
// # Promise
//
// The service and the caller see the same requests and answers as by the SDK. What the
// processor saves is in docs/performance.md, "Client time". All other operations, and
// calls by others than Dynahold, are the SDK's own.
//
// # How
//
// The SDK makes the first request of each operation, and what it has made is the example
// for those that follow: address, headers, all that it has resolved for the client. A
// request that follows differs in its body, the invocation's id, the trace of a Lambda
// invocation, the date and the signature (Signature Version 4). The example is taken
// only if its signature is the one that is made for it here, and only if it was answered
// with success. An answer is read by the SDK's deserializer. Whatever is no plain success
// or failed condition goes the SDK's whole way, with the request already sent.
//
// # When not
//
// [Client] refuses a client whose options ask for anything that happens in the
// middleware: APIOptions (as tracers add), interceptors, an endpoint resolver, signer,
// scheme of authentication or protocol of your own, endpoint discovery, a tracer or meter
// provider, ClientLogMode, gzip, no credentials. The error names the option.
//
// While the service's clock, as the dates of its answers tell it, is more than a minute
// away from ours the SDK makes the requests. Within that minute a signature's date is not
// corrected by the difference, and Amz-Sdk-Request does not tell when the caller gives up.
package direct
