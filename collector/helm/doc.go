// Package helm tests the chart in the folder symfilter. It is a module of its own, because Helm and
// the types of Kubernetes bring 150 other modules.
package helm
