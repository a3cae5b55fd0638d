// Peer of tests/interop/test_sealed_keys.py: reads and writes compact JWE with go-jose, as other workspace proxies do.
// Usage: jose_peer open|seal|seal-plain KEY_IN_HEX [KID] < TEXT
package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/go-jose/go-jose/v4"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	key, err := hex.DecodeString(os.Args[2])
	must(err)
	text, err := io.ReadAll(os.Stdin)
	must(err)
	if os.Args[1] == "open" {
		object, err := jose.ParseEncrypted(string(text), []jose.KeyAlgorithm{jose.A256GCMKW}, []jose.ContentEncryption{jose.A256GCM})
		must(err)
		plain, err := object.Decrypt(key)
		must(err)
		fmt.Printf("%s\n%s", object.Header.KeyID, plain)
		return
	}
	options := &jose.EncrypterOptions{ExtraHeaders: map[jose.HeaderKey]interface{}{"kid": os.Args[3]}}
	if os.Args[1] == "seal" {
		options.Compression = jose.DEFLATE
	}
	encrypter, err := jose.NewEncrypter(jose.A256GCM, jose.Recipient{Algorithm: jose.A256GCMKW, Key: key}, options)
	must(err)
	object, err := encrypter.Encrypt(text)
	must(err)
	compact, err := object.CompactSerialize()
	must(err)
	fmt.Print(compact)
}
