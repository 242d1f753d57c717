import '../base.css'
import './play.css'
import { render } from 'preact'
import { PlayPage } from './play-page.tsx'

render(<PlayPage />, document.body)
