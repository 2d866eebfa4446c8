// Reads Kubernetes objects as YAML from standard input, and decodes them with the types of the Kubernetes API. Unknown kinds,
// unknown fields, duplicate keys and values of a wrong type are errors. Kinds of other projects must be named as arguments.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(os.Stdin))
	decoded, failed := 0, false
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			var object struct{ Kind string }
			if err = yaml.Unmarshal(document, &object); err == nil && (object.Kind == "" || slices.Contains(os.Args[1:], object.Kind)) {
				continue
			}
			_, _, err = decoder.Decode(document, nil, nil)
			decoded++
		}
		if err != nil {
			failed = true
			fmt.Fprintf(os.Stderr, "%v\n%s\n", err, document)
			if !runtime.IsStrictDecodingError(err) {
				break
			}
		}
	}
	fmt.Println(decoded)
	if failed {
		os.Exit(1)
	}
}
