// Package web is the page of a server: jobs as they run, one job, jobs beside each other, models, data sets and the
// pool, for a browser.
//
// Pages are written on the server and readable without a script; the script only asks for a page anew when something
// has happened, and puts what is different in its place, so that scrolling, filters and marks survive. Nothing is
// loaded from elsewhere, and the content security policy allows no script and no style but the page's own two files.
//
// Who looks signs in with the tokens of the API. A session's cookie is for these pages alone, goes to no other site and
// cannot be read by scripts; the token behind it is looked at with every request, so that one that was revoked opens
// nothing. What a tenant sees comes from his own Service.
package web
