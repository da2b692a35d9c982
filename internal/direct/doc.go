// Package direct sends requests of a client of the SDK without the SDK's
// middleware, which costs more of the processor's time than all the rest of a
// request: the same request, over the client's own HTTP client, with the client's own
// credentials and deserializer.
//
// # Promise
//
// Nobody can tell the difference, but by the time that it takes.
//
// # How
//
// A [Path] is of one client and one table. The SDK makes the first request of each
// operation, and what it has made is the example for those that follow: address,
// headers, all that it has resolved for the client. A request that follows differs in
// what differs between any two requests of the SDK: its body, which [Body] writes as the
// SDK would, the invocation's id, the trace of a Lambda invocation, the date and the
// signature. The example is taken only if the signature that it carries is the one that
// is made for it here, and only if it was answered with success.
//
// An answer is read by the SDK's deserializer. Whatever is no plain success or refused
// condition goes the SDK's whole way, with the request already sent: that is the
// caller's part.
//
// # When not
//
// Where the client's options ask for anything that happens in the middleware, see
// [New]; and while the service's clock, as the dates of its answers tell it, is more
// than a minute away from ours: the SDK then knows by how much its signatures have to
// be dated differently.
//
// # What differs
//
// The SDK corrects the date of each signature by the difference of the clocks that it
// saw last, and tells in the header Amz-Sdk-Request when its caller gives up if that
// difference is positive; here neither is done within that minute. And the SDK warns
// its log about replies without a checksum, as of engines for tests.
package direct
