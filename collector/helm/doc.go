// Package helm tests the chart in the folder symfilter. It is a separate module, because Helm and
// the types of Kubernetes bring 150 other modules.
package helm
