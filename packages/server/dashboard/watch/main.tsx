import '../base.css'
import './watch.css'
import { render } from 'preact'
import { WatchPage } from './watch-page.tsx'

render(<WatchPage />, document.body)
